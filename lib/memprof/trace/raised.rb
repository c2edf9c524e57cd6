# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Trace
    # What a request raised: the class, the status that a client gets, and the code of the database or the
    # system that stands behind it.
    module Raised
      # Where {watch} notes an exception for which Rails shows its page for developers.
      DETAILED = "memprof.exception"
      # Where an exception is that has been answered already: Rails', Sinatra's, and other middleware's.
      ANSWERED = ["action_dispatch.exception", "sinatra.error", "rack.exception", DETAILED].freeze
      NOTE = ->(request, error) { request.set_header(DETAILED, error) }
      SHOWN = "action_dispatch.show_exceptions"
      # Codes that client gems and the system give, by their methods.
      CODES = {
        "Mysql2::Error" => { "error_number" => :error_number, "sqlstate" => :sql_state },
        "Trilogy::BaseError" => { "error_number" => :error_code },
        "SQLite3::Exception" => { "error_number" => :code },
        "SystemCallError" => { "errno" => :errno }
      }.freeze
      POSTGRES = "PG::Error"
      # PG::PG_DIAG_SQLSTATE
      SQLSTATE = "C".ord
      # Exceptions that are looked at: Active Record's has the client's as its cause.
      DEEPEST = 10
      private_constant :DETAILED, :ANSWERED, :NOTE, :SHOWN, :CODES, :POSTGRES, :SQLSTATE, :DEEPEST

      class << self
        # Has Rails say for which exception it shows its page for developers, which leaves none in the env.
        # It has loaded that middleware if it uses it.
        def watch
          return if !defined?(::ActionDispatch) || ::ActionDispatch.autoload?(:DebugExceptions)
          return unless defined?(::ActionDispatch::DebugExceptions.register_interceptor)
          return if ::ActionDispatch::DebugExceptions.interceptors.include?(NOTE)

          ::ActionDispatch::DebugExceptions.register_interceptor(NOTE)
        end

        # The exception that the application answered with a page for errors.
        def answered(env) = env.values_at(*ANSWERED).grep(Exception).first

        # The status of an exception without a response so far: that of Rails if it will, else the server's
        # 500. One that ends the process is not answered.
        def status(error, env)
          return if error.is_a?(SystemExit) || error.is_a?(SignalException)
          return 500 unless shown_by_rails?(env)

          ::ActionDispatch::ExceptionWrapper.status_code_for_exception(name(error))
        end

        # The nearest name that there is.
        def name(error) = names(error).first

        # As `{ "class" => "PG::UniqueViolation", "sqlstate" => "23505" }`; nil if there is none.
        def code(error)
          DEEPEST.times do
            codes = codes(error)
            return { "class" => Printable.utf8(name(error)), **codes } unless codes.empty?

            error = error.cause or return
          end
          nil
        rescue StandardError
          nil # a method of the program's
        end

        private

        # ShowExceptions answers what passes it, so a middleware that sees an exception is inside of it.
        def shown_by_rails?(env)
          return false unless defined?(::ActionDispatch::ExceptionWrapper) && env.is_a?(Hash)

          shown = env[SHOWN]
          !shown.nil? && shown != false && shown != :none
        end

        def names(error)
          name = Module.instance_method(:name)
          error.class.ancestors.grep(Class).filter_map { |one| name.bind_call(one) }
        end

        def codes(error)
          names = names(error)
          return sqlstate(error) if names.include?(POSTGRES)

          methods = CODES.values_at(*names).compact.first || {}
          codes = methods.transform_values { |method| error.public_send(method) if error.respond_to?(method) }
          codes.transform_values { |code| code.is_a?(String) ? Printable.line(code) : code }
            .select { |_, code| code.is_a?(Integer) || (code.is_a?(String) && !code.empty?) }
        end

        # Not known if the server did not answer, or the result has been cleared.
        def sqlstate(error)
          state = error.result&.error_field(SQLSTATE)
          state ? { "sqlstate" => Printable.line(state) } : {}
        rescue StandardError
          {}
        end
      end
    end
  end
end
