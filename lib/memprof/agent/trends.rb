# frozen_string_literal: true

require_relative "../errors"
require_relative "../native"
require_relative "../paths"
require_relative "directory"
require_relative "leak"
require_relative "trends/judgement"
require_relative "trends/pool"
require_relative "trends/series_table"

module Memprof
  module Agent
    # Names the sites that leak, from interval to interval: each process records how many bytes of each site
    # are alive, and one process on the host judges the sums of all that belong to a service.
    class Trends
      autoload :Holder, "#{__dir__}/trends/holder"
      autoload :Levels, "#{__dir__}/trends/levels"
      autoload :Named, "#{__dir__}/trends/named"
      autoload :Published, "#{__dir__}/trends/published"

      # Of the directory below that of the agent.
      NAME = "trends"
      # Sites in the file of a process.
      SHARED = 128
      # Paths of frames whose owner is remembered.
      FRAMES = 4096
      FRAME = /\A(.+):(\d+):in /
      private_constant :NAME, :SHARED, :FRAMES, :FRAME

      # As the agent's settings want it.
      def self.open(settings) = new(directory: Directory.new(settings[:directory]).subdirectory(NAME).path)

      # `directory` is where the processes of a host share their series. `hour` are the seconds of an hour,
      # fewer in tests. `holder` finds what retains a site; nil leaves that unknown. `allocated` has the
      # number of objects that this process has allocated so far.
      def initialize(directory:, hour: 3600.0, sites: 256, holder: Holder.method(:find),
        allocated: -> { GC.stat(:total_allocated_objects) })
        @hour = hour
        @holder = holder
        @allocated = allocated
        @pool = Pool.new(directory, hour: hour)
        @table = SeriesTable.new(sites: sites, hour: hour)
        @owners = {}
        @leaks = [].freeze
      end

      # Leaks of this service that are known in any process of the host.
      attr_reader :leaks

      # Records an interval. Returns leaks that are to be logged.
      def add(interval)
        say = finished
        @labels = interval.labels
        time = interval.started_at.to_f + interval.duration
        majors = interval.gc[:major] || 0
        allocated = @allocated.call
        done = @table.add(time, live(interval), interval.duration, majors: majors, allocated: allocated)
        complete(time) if done
        say
      end

      # Removes the file of this process: it no longer counts as a worker.
      def close = @pool.withdraw

      # Waits until leaks that were found have their holder, and returns them.
      def flush(seconds = 0)
        @search&.join(seconds)
        finished
      end

      private

      def complete(time)
        @pool.publish(Published.content(@table, @labels, SHARED))
        @pool.lead { decide(time) }
        @leaks = Named.new(@pool.memory).leaks(@labels[:service])
      end

      # Bytes, their variance, and bytes times age, by site.
      def live(interval)
        live = {}
        ages = interval.ages
        # If none is older than nothing, they were not measured.
        ages = [] unless ages.any? { |mean, _| mean&.positive? }
        interval.report.sites.each_with_index do |site, index|
          bytes = site.retained_bytes
          next if bytes.zero?

          error = interval.errors[index]&.at(3) || 0.0
          age = ages[index]&.first
          sum = (live[place(site)] ||= [0, 0.0, 0.0])
          sum[0] += bytes
          sum[1] += error * error
          sum[2] = age && sum[2] ? sum[2] + bytes * age : nil
        end
        live
      end

      # By the innermost line of the application, if there is one.
      def place(site)
        frame = site.stack.find { |text| application?(text) } unless application_file?(site.file)
        file, line = frame&.match(FRAME)&.captures
        file ? [file, line.to_i, site.class_name] : [site.file, site.line, site.class_name]
      end

      def application?(frame) = (file = frame[FRAME, 1]) && application_file?(file)

      def application_file?(file)
        @owners.clear if @owners.size >= FRAMES
        @owners.fetch(file) { @owners[file] = Paths.application?(file) }
      end

      # In the process that leads: judges each site of this service and release.
      def decide(now)
        named = Named.new(@pool.memory)
        return if named.decided?(@labels[:service], now, @hour / SeriesTable::PER_HOUR / 2)

        workers = Published.read(@pool, @labels, now, @hour)
        named.observe(@labels, now, @hour)
        judged = judgements(workers, now)
        named.level(judged.transform_values(&:level).compact, @labels, now, @hour)
        say = named.add(judged.transform_values(&:growth).compact, @labels, now, @hour)
        @pool.memory = named.content
        @pool.remove_old
        say_later(say) unless say.empty?
      end

      def judgements(workers, now)
        workers.flat_map { |worker| worker.series.keys }.uniq.to_h do |site|
          [site, Judgement.new(workers.map { |worker| worker.track(site) }, now, @hour)]
        end
      end

      # A copy of the process takes seconds, which the next interval does not wait for.
      def say_later(leaks)
        own = @table.series
        wanted = leaks.map { |leak| [leak, own[[leak.file, leak.line, leak.class_name]]&.bytes&.last] }
        @search&.join
        @search = Thread.new { Native.quiet { wanted.map { |leak, bytes| with_holder(leak, bytes) } } }
        @search.report_on_exception = false
        @search.name = "memprof leak"
      end

      # Once per leak; it is said without the holder if that can't be found.
      def with_holder(leak, bytes)
        return leak if leak.holder || bytes.nil? || bytes.zero? || @holder.nil?

        leak.with_holder(@holder.call(leak.file, leak.line, leak.class_name, bytes))
      rescue StandardError
        leak
      end

      def finished
        return [] if @search.nil? || @search.alive?

        leaks = @search.value
        @search = nil
        remember(leaks)
        leaks
      end

      def remember(leaks)
        @pool.lead do
          named = Named.new(@pool.memory)
          leaks.each { |leak| named.hold(leak) }
          @pool.memory = named.content
        end
      rescue Error
        nil # the directory is gone: the leak is said all the same
      end
    end
  end
end
