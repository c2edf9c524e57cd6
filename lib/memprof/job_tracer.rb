# frozen_string_literal: true

require "memprof"
require_relative "lock"
require_relative "trace/requests"

module Memprof
  # Traces background jobs, as {Tracer} does requests: each job appends a line with its class, queue and id to
  # {Tracer}'s file, or to that of {Memprof.trace_to}. `memprof trace FILE` groups them by class.
  #
  # Use it in Active Job (so also with Solid Queue and GoodJob) or as Sidekiq's server middleware, not in
  # both: a job would be traced twice. A line that can't be written is reported once on stderr, and the job
  # runs.
  #
  # @example Rails, all jobs
  #   class ApplicationJob < ActiveJob::Base
  #     require "memprof/tracer"
  #     around_perform Memprof::JobTracer
  #   end
  #
  # @example Rails, one job in ten
  #   class ApplicationJob < ActiveJob::Base
  #     require "memprof/tracer"
  #     around_perform Memprof::JobTracer.with(one_in: 10)
  #   end
  #
  # @example Sidekiq, in an initializer of Rails
  #   require "memprof/tracer"
  #   Sidekiq.configure_server do |config|
  #     config.server_middleware { |chain| chain.add Memprof::JobTracer, one_in: 10 }
  #   end
  class JobTracer
    @lock = Lock.new
    @requests = {}

    class << self
      # Called by `around_perform`.
      #
      # @param job [#queue_name, #job_id] an Active Job
      # @yield performs the job
      # @return [Object] the block's value
      # @example
      #   Job = Struct.new(:queue_name, :job_id)
      #   Memprof::JobTracer.around(Job.new("mail", "7f")) { :done } # => :done
      def around(job, &perform) = new.around(job, &perform)

      # @param options (see #initialize)
      # @return [JobTracer] for `around_perform`, with these options
      # @raise [ArgumentError] if an option is invalid
      # @example
      #   Memprof::JobTracer.with(path: "log/jobs-%p.json", per_second: 50)
      def with(**options) = new(**options)

      # What tracers with the same options share: Sidekiq builds one for each job.
      #
      # @api private
      def requests(options) = @lock.synchronize { @requests[options] ||= Trace::Requests.new(**options) }
    end

    # @param options [Hash{Symbol => Object}] `path:`, `scope:`, `tracers:`, `except:`, `max_size:`,
    #   `when_full:`, `one_in:`, `per_second:` and `lines:`, as {Tracer#initialize} takes them
    # @raise [ArgumentError] if an option is invalid
    # @example
    #   Memprof::JobTracer.new(tracers: %i[objects gc sql])
    def initialize(**options)
      @requests = JobTracer.requests(options)
    end

    # Traces an Active Job.
    #
    # @param job (see JobTracer.around)
    # @yield (see JobTracer.around)
    # @return (see JobTracer.around)
    # @example
    #   Job = Struct.new(:queue_name, :job_id)
    #   Memprof::JobTracer.new(path: "jobs.json").around(Job.new("mail", "7f")) { :done } # => :done
    def around(job, &perform) = trace(job.class.name, job.queue_name, job.job_id, &perform)

    # Traces a job of Sidekiq. One of Active Job has the class of its job.
    #
    # @param _instance [Object] of the job's class
    # @param job [Hash{String => Object}] as Sidekiq has read it from Redis
    # @param queue [String]
    # @yield performs the job
    # @return [Object] the block's value
    # @example
    #   job = { "class" => "MailJob", "jid" => "7f" }
    #   Memprof::JobTracer.new(path: "jobs.json").call(nil, job, "mail") { :done } # => :done
    def call(_instance, job, queue, &perform)
      trace(job["wrapped"] || job["class"], queue, job["jid"], &perform)
    end

    private

    def trace(name, queue, id, &perform)
      job = { "class" => name, "queue" => queue, "id" => id }
      @requests.trace({ Trace::Request::JOB => job }, &perform)
    end
  end
end
