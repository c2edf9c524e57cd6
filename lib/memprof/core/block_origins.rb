# frozen_string_literal: true

module Memprof
  class Core
    # Where blocks of a core file were allocated, from a malloc recording of the same process.
    module BlockOrigins
      class << self
        # Adds a recording to the image, ignoring events after `time`. `pid` is the process, if it lives.
        def add(image, path, time:, pid: nil)
          milliseconds = (time.to_r * 1000).floor
          why, other = File.open(path, "rb") do |file|
            image.add_recording(file.fileno, milliseconds, pid ? pids(pid) : [])
          end
          raise Error, "#{path} #{fault(why, other)}" if why
        rescue SystemCallError => e
          raise Error, "cannot read #{path}: #{Output.reason(e)}", cause: nil
        end

        private

        # The process may have another PID in its container.
        def pids(pid)
          File.read("/proc/#{pid}/status")[/^NSpid:(.*)/, 1].to_s.split.map(&:to_i)
        rescue SystemCallError
          []
        end

        def fault(why, pid)
          case why
          when :no_recording then "is not a recording of malloc"
          when :no_addresses
            "has no addresses of blocks; record with `memprof run --malloc --addresses`, or " \
            "`Memprof::Malloc.record(path, addresses: true)`"
          when :other_process then "is a recording of another process, #{pid}"
          else "has none of the blocks of this process: it is of another one, or ended long before"
          end
        end
      end
    end
  end
end
