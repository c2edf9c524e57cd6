# frozen_string_literal: true

require_relative "../printable"
require_relative "directory"

module Memprof
  module Agent
    # A receiver gets each interval of the agent by `call`; each kind is one file.
    #
    # @api private
    module Receivers
      # Writes each interval as a file in pprof's format, and removes the oldest ones.
      #
      # The workers of a server may share a directory, and its limits.
      class Files
        COUNT = 500
        BYTES = 256 * 1024 * 1024
        # Names end with the time and the process, so they sort by time.
        NAME = /\Amemprof-\d{8}T\d{9}Z-\d+\.pb\.gz\z/
        private_constant :NAME

        def initialize(path, count: COUNT, bytes: BYTES)
          @directory = Directory.new(path)
          @count = count
          @bytes = bytes
        end

        # Raises Error if it can't be written.
        def call(interval)
          @directory.prepare
          labels = interval.labels.compact.map { |name, value| "#{name}=#{Printable.line(value)}" }
          profile = interval.report.profile.served_pprof("inuse_space", nil, labels)
          path = @directory.write(name(interval)) { |file| file.write(profile) }
          remove_oldest
          path
        end

        private

        def name(interval)
          time = (interval.started_at + interval.duration).getutc
          "memprof-#{time.strftime("%Y%m%dT%H%M%S%L")}Z-#{Process.pid}.pb.gz"
        end

        # Other workers may do the same at the same time.
        def remove_oldest
          files = Dir.children(@directory.path).grep(NAME).sort.reverse
          total = 0
          files.each_with_index do |file, index|
            path = File.join(@directory.path, file)
            total += size(path)
            # The newest one remains, whatever its size.
            remove(path) if index.positive? && (index >= @count || total > @bytes)
          end
        end

        def size(path)
          File.lstat(path).size
        rescue SystemCallError
          0
        end

        def remove(path)
          File.unlink(path)
        rescue SystemCallError
          nil
        end
      end
    end
  end
end
