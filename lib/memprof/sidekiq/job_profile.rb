# frozen_string_literal: true

require_relative "../clock"
require_relative "../printable"

module Memprof
  module Sidekiq
    # The allocations of one job by call stack, in Redis where the tab Profiles of Sidekiq 8 finds them. Has
    # names of code, never values of the program. A failure in here never becomes the job's.
    class JobProfile
      # The option of jobs that ask for a profile.
      OPTION = "memprof"
      TOKEN = "memprof"
      # Keys of all profiles, by the time at which they expire.
      INDEX = "profiles"
      # Seconds.
      EXPIRY = 86_400
      # Frames.
      STACK = 256
      # Maximum compressed bytes: Redis has them in memory.
      LARGEST = 16 * 1024 * 1024
      private_constant :TOKEN, :INDEX, :EXPIRY, :STACK, :LARGEST

      def initialize(job)
        @job = job
      end

      # Tracks a block on this thread. A block that raises has no profile, as with Sidekiq's own profiler.
      def run
        session = guard { Session.prepare(scope: :thread, stack: STACK) }
        recording = session && guard { session.open || true }
        started = Time.now
        began = Clock.now
        value = yield
        guard { publish(session, started, Clock.now - began) } if recording
        value
      ensure
        guard { session&.close }
      end

      private

      def guard
        yield
      rescue StandardError, LoadError => e
        warn("#{e.message} (#{e.class})")
        nil
      end

      def warn(message)
        ::Sidekiq.logger.warn("memprof: no profile of #{name}: #{Printable.line(message)}")
      rescue StandardError
        nil # without a logger
      end

      def name = Printable.utf8((@job["wrapped"] || @job["class"]).to_s)

      def publish(session, started, elapsed)
        session.finish
        data = compressed(session)
        if data.bytesize > LARGEST
          raise Error, "its #{data.bytesize} bytes are more than #{LARGEST} bytes"
        end

        store("started_at" => started.to_i, "token" => TOKEN, "type" => name, "jid" => @job["jid"].to_s,
          "elapsed" => elapsed.round(6), "size" => data.bytesize, "data" => data)
      end

      def compressed(session)
        Loading.load("zlib")
        Native.quiet { Zlib.gzip(session.profile.export("firefox", "allocated_bytes")) }
      end

      # Removes expired ones, as a Sidekiq before 8 does not, and what the tab knows of an earlier run.
      def store(record)
        key = "#{TOKEN}-#{record["jid"]}"
        now = Time.now.to_f
        ::Sidekiq.redis do |redis|
          redis.multi do |all|
            all.zremrangebyscore(INDEX, "-inf", now.to_s)
            all.zadd(INDEX, now + EXPIRY, key)
            all.del(key)
            all.hset(key, record)
            all.expire(key, EXPIRY)
          end
        end
      end
    end
  end
end
