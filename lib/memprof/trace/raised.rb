# frozen_string_literal: true

require_relative "../printable"

module Memprof
  class Trace
    # A request's exception: its class, the status that the client gets, and the underlying error code of the
    # database or the system.
    module Raised
      # Where {watch} stores an exception for which Rails shows its developer page.
      DETAILED = "memprof.exception"
      # Where an exception is stored that has been answered already: by Rails, Sinatra, and other middleware.
      ANSWERED = ["action_dispatch.exception", "sinatra.error", "rack.exception", DETAILED].freeze
      NOTE = ->(request, error) { request.set_header(DETAILED, error) }
      SHOWN = "action_dispatch.show_exceptions"
      # Methods that return the codes of client gems and the system.
      CODES = {
        "Mysql2::Error" => { "error_number" => :error_number, "sqlstate" => :sql_state },
        "Trilogy::BaseError" => { "error_number" => :error_code },
        "SQLite3::Exception" => { "error_number" => :code },
        "SystemCallError" => { "errno" => :errno }
      }.freeze
      POSTGRES = "PG::Error"
      # PG::PG_DIAG_SQLSTATE
      SQLSTATE = "C".ord
      # Maximum length of a chain of causes: Active Record's exception has the client's as its cause.
      DEEPEST = 10
      private_constant :DETAILED, :ANSWERED, :NOTE, :SHOWN, :CODES, :POSTGRES, :SQLSTATE, :DEEPEST

      class << self
        # Makes Rails report each exception for which it shows its developer page, as that leaves none in the
        # env. An app that uses this middleware has loaded it by then.
        def watch
          return if !defined?(::ActionDispatch) || ::ActionDispatch.autoload?(:DebugExceptions)
          return unless defined?(::ActionDispatch::DebugExceptions.register_interceptor)
          return if ::ActionDispatch::DebugExceptions.interceptors.include?(NOTE)

          ::ActionDispatch::DebugExceptions.register_interceptor(NOTE)
        end

        # The exception that the application answered with an error page.
        def answered(env) = env.values_at(*ANSWERED).grep(Exception).first

        # The status of an exception without a response so far: Rails' if Rails shows it, otherwise the
        # server's 500. An exception that ends the process is not answered.
        def status(error, env)
          return if error.is_a?(SystemExit) || error.is_a?(SignalException)
          return 500 unless shown_by_rails?(env)

          ::ActionDispatch::ExceptionWrapper.status_code_for_exception(name(error))
        end

        # The name of the nearest named class.
        def name(error) = names(error).first

        # As `{ "class" => "PG::UniqueViolation", "sqlstate" => "23505" }`, or nil.
        def code(error)
          DEEPEST.times do
            codes = codes(error)
            return { "class" => Printable.utf8(name(error)), **codes } unless codes.empty?

            error = error.cause or return
          end
          nil
        rescue StandardError
          nil # a method of the program raised
        end

        private

        # ShowExceptions answers all exceptions, so a middleware that sees one is inside of it.
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

        # Unknown if the server did not answer, or if the result has been cleared.
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
