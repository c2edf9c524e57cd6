# frozen_string_literal: true

require_relative "../lock"
require_relative "journal"

module Memprof
  class Trace
    # The file that the requests of this process are added to. A forked process gets one of its own.
    class ProcessFile
      def initialize(path = nil, **options)
        @path = path
        @options = options
        @lock = Lock.new
      end

      def path
        (@path || File.join(directory, "memprof_tracer-%p.json")).gsub("%p", Process.pid.to_s)
      end

      def journal
        given = Memprof.instance_variable_get(:@trace_journal)
        return given if given

        @lock.synchronize do
          unless @pid == Process.pid
            @journal&.close # the parent's, which has it open itself
            @journal = nil
            @journal = Journal.file(path, own: @path.nil?, **@options)
            @pid = Process.pid
          end
          @journal
        end
      end

      def full?
        !@journal.nil? && @pid == Process.pid && @journal.full?
      end

      private

      def directory
        given = ENV.fetch("MEMPROF_DIR", "")
        given.empty? ? "/tmp" : given
      end
    end
  end
end
