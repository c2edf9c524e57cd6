# frozen_string_literal: true

require "digest"
require_relative "response"

module Memprof
  class Web
    # The files of web/assets. Their names on pages contain a digest of their contents, so browsers may cache
    # them forever. Files are served as they were when the first page was rendered, from a table: no request
    # path reaches the file system.
    module Assets
      DIRECTORY = File.expand_path("../../../web/assets", __dir__)
      TYPES = {
        ".css" => "text/css; charset=utf-8", ".js" => "text/javascript; charset=utf-8",
        ".svg" => "image/svg+xml"
      }.freeze
      PREFIX = "/assets/"
      FOR_EVER = "public, max-age=31536000, immutable"
      private_constant :DIRECTORY, :TYPES, :PREFIX, :FOR_EVER

      # One file.
      Asset = Struct.new(:path, :type, :text, :tag)

      class << self
        def path(name) = by_name.fetch(name).path

        def text(name) = by_name.fetch(name).text

        def response(request)
          return unless request.verb == "GET" && request.path.start_with?(PREFIX)

          asset = by_path[request.path]
          return Response.text(404, "no such file\n") unless asset

          headers = { "etag" => asset.tag, "cache-control" => FOR_EVER }
          return Response.new(304, nil, nil, headers) if known?(request, asset)

          Response.new(200, asset.type, asset.text, headers)
        end

        private

        # A proxy that compresses marks the tag as weak, and may send several.
        def known?(request, asset)
          tags = request.header("If-None-Match").to_s.split(",").map { |tag| tag.strip.delete_prefix("W/") }
          tags.include?(asset.tag) || tags == ["*"]
        end

        def by_path
          @by_path ||= by_name.values.to_h { |asset| [asset.path, asset] }
        end

        def by_name
          @by_name ||= Dir.glob("**/*", base: DIRECTORY).select { |name| TYPES.key?(File.extname(name)) }
            .to_h { |name| [name, read(name)] }
        end

        def read(name)
          text = File.read(File.join(DIRECTORY, name), encoding: "UTF-8").freeze
          digest = Digest::SHA256.hexdigest(text)[0, 16]
          extension = File.extname(name)
          path = "#{PREFIX}#{name.delete_suffix(extension)}-#{digest}#{extension}"
          Asset.new(path, TYPES.fetch(extension), text, %("#{digest}"))
        end
      end
    end
  end
end
