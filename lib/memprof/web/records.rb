# frozen_string_literal: true

require_relative "../file_kind"
require_relative "../malloc"
require_relative "../native"
require_relative "request"

module Memprof
  class Web
    # Available files other than heaps: traced requests, tracked allocations, malloc recordings, requires of a
    # boot. Each kind counts from 1.
    class Records
      include Enumerable

      # One file, read on first access.
      class Record
        attr_reader :id, :kind, :name, :path

        def initialize(id, kind, path, reader)
          @id = id
          @kind = kind
          @path = path
          @name = File.basename(path)
          @reader = reader
          @lock = Mutex.new
        end

        def content
          @lock.synchronize { @content ||= File.open(@path, "rb") { |io| @reader.read(io) } }
        rescue SystemCallError => e
          raise Error, "cannot read #{@path}: #{e.message}"
        end

        def page_path = "/#{Records::PLACES.fetch(@kind)}/#{@id}"
      end

      # The first path segment of each kind's pages.
      PLACES = { trace: "traces", tracked: "tracked", malloc: "malloc", boot: "boots" }.freeze

      def initialize
        @lock = Mutex.new
        @records = {}
      end

      def add(path, kind)
        reader = { trace: Traces, tracked: Tracked, malloc: Recording, boot: BootRecord }.fetch(kind)
        @lock.synchronize do
          id = @records.count { |(known, _), _| known == kind } + 1
          @records[[kind, id]] = Record.new(id, kind, path, reader)
        end
      end

      def fetch(id, kind)
        @lock.synchronize { @records[[kind, Integer(id, 10, exception: false)]] } ||
          raise(NotFound, "no such file: #{id}")
      end

      def each(&block) = @lock.synchronize { @records.values }.each(&block)
    end
  end
end

require_relative "records/boot_record"
require_relative "records/recording"
require_relative "records/traces"
require_relative "records/tracked"
