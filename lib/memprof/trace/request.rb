# frozen_string_literal: true

require_relative "../clock"
require_relative "../printable"
require_relative "../rails_action"
require_relative "../redaction"
require_relative "after_reply"
require_relative "raised"

module Memprof
  class Trace
    # A traced request of a web application, as Memprof.trace_request writes it, or a job, as JobTracer does.
    class Request
      # The key of a job's class, queue and id in the env that stands for it.
      JOB = "memprof.job"
      # Keys of the Rack env that are written.
      KEYS = %w[REQUEST_PATH PATH_INFO REMOTE_ADDR REQUEST_URI REQUEST_METHOD QUERY_STRING].freeze
      # Keys of a request's id: Rails', which is validated, and the client's.
      IDS = %w[action_dispatch.request_id HTTP_X_REQUEST_ID].freeze
      # Characters that Rails removes from a client's id, and its maximum length.
      NOT_IN_ID = /[^\w\-@]/
      LONGEST_ID = 255
      private_constant :KEYS, :IDS, :NOT_IN_ID, :LONGEST_ID

      def initialize(env, journal, status: nil, later: false)
        @env = env
        @journal = journal
        @status = status
        @later = later
      end

      # Traces a request and writes it.
      def trace(trace)
        capture_env
        Trace.run(trace, self) do
          self.begin
          yield
        rescue Exception => e # rubocop:disable Lint/RescueException -- it goes on
          @raised = e
          raise
        ensure
          self.end
        end
      end

      # Captures the request as it came in: the application may overwrite parts of the env later, as Rails
      # does with the path of an error page.
      def capture_env
        @start = Process.clock_gettime(Process::CLOCK_REALTIME, :microsecond)
        @asked = @env.values_at(*KEYS) if @env.is_a?(Hash)
      end

      # Runs inside the trace, so it must not allocate objects.
      def begin
        @began = Clock.now
      end

      def end
        @time = Clock.now - @began if @began
      end

      # Takes the report from Trace.run. It is written now, or after the reply is sent; either way as things
      # are now. A request whose thread ended before it began has no record.
      def call(report, returned)
        return unless @time

        @report = report
        @action = RailsAction.of(@env) if @env.is_a?(Hash)
        @id = @env.values_at(*IDS).grep(String).first if @env.is_a?(Hash)
        @code = code(returned&.first) if returned || @raised
        @raised ||= Raised.answered(@env) if returned && @env.is_a?(Hash)
        write unless @later && returned && AfterReply.defer(@env, returned.first, self)
      end

      def write = @journal.write(record)

      private

      def record
        { "start" => @start, "tracers" => @report, "rails" => rails, "job" => job,
          "request" => (request unless job), "response" => (response unless job), "exception" => exception,
          "exception_code" => (Raised.code(@raised) if @raised), "time" => @time.round(9) }.compact
      end

      def code(value)
        code = value.first if value.is_a?(Array)
        return code unless code.nil?
        return @status.call(@raised) if @status

        Raised.status(@raised, @env) if @raised
      end

      def exception
        Printable.utf8(Raised.name(@raised)) if @raised
      end

      def rails
        @action&.zip(RailsAction::PARTS)&.to_h { |name, key| [key.name, (Printable.utf8(name) if name)] }
      end

      def job
        return unless @env.is_a?(Hash)

        @env[JOB]&.transform_values { |value| Printable.utf8(value.to_s.byteslice(0, LONGEST_ID)) }
      end

      def request
        @asked&.each_with_index&.with_object({}) do |(value, index), request|
          next unless value.is_a?(String)

          key = KEYS[index]
          request[key] = value.empty? && key == "QUERY_STRING" ? nil : redacted(key, value)
        end&.merge(id)
      end

      def id
        id = Printable.utf8(@id.to_s.byteslice(0, LONGEST_ID)).gsub(NOT_IN_ID, "")
        id.empty? ? {} : { "request_id" => id }
      end

      # The value without secrets.
      def redacted(key, value)
        case key
        when "QUERY_STRING" then Redaction.query(value, @env)
        when "REQUEST_URI" then Redaction.uri(value, @env)
        else Printable.utf8(value)
        end
      end

      def response
        { "code" => @code.to_i } if @code.is_a?(Integer) || @code.to_s.match?(/\A\d+\z/)
      end
    end
  end
end
