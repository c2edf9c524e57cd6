# frozen_string_literal: true

require_relative "../library"
require_relative "gate"
require_relative "request"
require_relative "response"

module Memprof
  class Web
    # `POST /upload?name=my_app`: adds a dump to the library, from clients with the key
    # (`Authorization: Bearer KEY`). The body is the dump, compressed or not; it is streamed to disk. The key
    # is checked before any of the body is read.
    class Uploads
      PATH = "/upload"
      CHUNK = 256 * 1024
      private_constant :PATH, :CHUNK

      def initialize(library, key, limit:)
        @library = library
        @key = key
        @limit = limit
        # Dumps are inspected one at a time: each takes as much memory as a page about it.
        @looking = Mutex.new
      end

      def answer(request)
        return unless request.verb == "POST" && request.path == PATH

        given = request.header("Authorization").to_s.delete_prefix("Bearer ")
        return refuse(403, "wrong key for this library") unless Secret.same?(given, @key)

        taken(request, take(request))
      rescue BadRequest => e
        refuse(400, e.message)
      rescue Library::TooLarge => e
        refuse(413, e.message)
      rescue InvalidDump
        refuse(422, "not a heap dump, so it was not stored; Memprof.dump_all and `memprof dump` write dumps")
      rescue Library::Truncated => e
        refuse(422, e.message)
      rescue Library::Full => e
        refuse(507, e.message)
      rescue Memprof::Error => e
        refuse(500, e.message)
      end

      def inspect = "#<#{self.class}>"

      private

      def take(request)
        params = request.params
        app = params["name"].to_s
        raise BadRequest, "name is missing: POST /upload?name=my_app" if app.strip.empty?

        facts = { host: params["host"], pid: Integer(params["pid"].to_s, 10, exception: false) }
        @library.take(app: app, name: params["title"], limit: @limit, facts: facts,
          whole: true) do |part|
          copy(request, part)
          @looking.lock
        end
      ensure
        @looking.unlock if @looking.owned?
      end

      def copy(request, part)
        length = Integer(request.env["CONTENT_LENGTH"].to_s, 10, exception: false)
        part.expect(length) if length
        input = request.env["rack.input"]
        while (chunk = read(input))
          part.write(chunk)
          chunk.clear # now, not at the next GC
        end
        return if length.nil? || length == part.size

        raise BadRequest, "the upload is truncated: received #{part.size} of #{length} bytes"
      end

      def read(input)
        input&.read(CHUNK)
      rescue SystemCallError, IOError => e
        raise BadRequest, "the upload is truncated: #{e.message}"
      end

      def taken(request, entry)
        address = "#{request.origin}#{request.script_name}/heaps/#{entry.number}/"
        Response.json(201, entry.to_h.merge(url: address))
      end

      # Nothing more is read from a refused client.
      def refuse(status, message)
        Response.json(status, { error: message }).tap { |response| response.headers["connection"] = "close" }
      end
    end
  end
end
