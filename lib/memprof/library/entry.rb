# frozen_string_literal: true

require "fileutils"
require "json"
require_relative "../output"
require_relative "../printable"

module Memprof
  class Library
    # A dump of the library, with its metadata.
    class Entry
      FILE = /\A(?<number>\d{13})-(?<slug>[\w.-]*)(?<ending>\.(?:memprof|json(?:\.gz|\.zst)?))\z/
      ABOUT = ".about.json"
      LONGEST = 100 # characters of a name
      # The default name.
      UNNAMED = "unnamed"
      # Magic bytes of dumps, and their file extensions. The others are JSON.
      HEADS = {
        "memprof".b => ".memprof", "\x1F\x8B".b => ".json.gz", "\x28\xB5\x2F\xFD".b => ".json.zst"
      }.freeze
      # Metadata besides the number and the size.
      FACTS = %w[name app host pid program ruby taken added objects].freeze
      private_constant :FILE, :ABOUT, :LONGEST, :UNNAMED, :HEADS, :FACTS

      class << self
        def all(directory)
          Dir.children(directory).filter_map do |name|
            match = FILE.match(name) or next
            stat = File.lstat(File.join(directory, name))
            new(directory, match[:number].to_i, name, stat.size) if stat.file?
          rescue Errno::ENOENT
            next # deleted in between
          end
        end

        # Builds the metadata of a dump.
        def about(heap, size, app:, name:, facts:)
          process = heap.ask(:overview, limit: 1).fetch(:process)
          app = clean(app)
          {
            "name" => name.to_s.strip.empty? ? app : clean(name), "app" => app,
            "host" => process[:hostname] || clean(facts[:host], nil), "pid" => process[:pid] || facts[:pid],
            "program" => process[:program], "ruby" => process[:ruby_version], "taken" => process[:time],
            "added" => Time.now.utc.strftime("%FT%TZ"), "size" => size, "objects" => heap.size
          }
        end

        # Gives a dump its name, with the library locked.
        def create(directory, number, about, part)
          slug = about["app"].gsub(/[^\w-]+/, "_")[0, 60]
          name = "#{number}-#{slug}#{ending(part.path)}"
          entry = new(directory, number, name, part.size, about)
          entry.write(about)
          # The index first: it is not listed until there is a dump.
          index = part.path + Part::INDEX
          File.rename(index, entry.path + Part::INDEX) if File.exist?(index)
          File.rename(part.path, entry.path)
          entry
        rescue SystemCallError, Error
          entry&.delete
          raise
        end

        def clean(text, default = UNNAMED)
          line = Printable.line(text.to_s).strip
          line.empty? ? default : line[0, LONGEST]
        end

        private

        def ending(path)
          head = File.binread(path, 8)
          HEADS.find { |bytes, _| head.start_with?(bytes) }&.last || ".json"
        end
      end

      attr_reader :number, :size

      def initialize(directory, number, file, size, about = nil)
        @directory = directory
        @number = number
        @file = file
        @size = size
        @about = about
      end

      def path = File.join(@directory, @file)

      def name = about["name"] || app

      def app = about["app"] || Entry.clean(FILE.match(@file)[:slug])

      def to_h
        facts = FACTS.to_h { |key| [key.to_sym, about[key]] }
        { id: number, **facts, name: name, app: app, size: size }
      end

      def rename(name, app)
        changed = { "name" => Entry.clean(name), "app" => Entry.clean(app, self.app) }
        write(about.merge(changed))
        self
      end

      def delete
        # The dump first: leftovers without it are not listed.
        FileUtils.rm_f([path, path + Part::INDEX, about_path])
      end

      def write(about)
        Output.write(about_path, "#{JSON.generate(about)}\n")
        @about = about
      end

      private

      def about_path = File.join(@directory, "#{number}#{ABOUT}")

      # A dump whose metadata is lost is still a dump.
      def about
        @about ||= begin
          found = JSON.parse(File.read(about_path, encoding: Encoding::UTF_8))
          found.is_a?(Hash) ? found.slice(*FACTS) : {}
        rescue SystemCallError, JSON::ParserError, EncodingError
          {}
        end
      end
    end
  end
end
