# frozen_string_literal: true

require_relative "client"
require_relative "sql/statements"
require_relative "../printable"

module Memprof
  module Tracers
    # `sql`: statements by their normalized text, and by the application's line that sends them. Active Record
    # reports them, and so do the client gems when used without it. (The extension also counts calls of C
    # libraries, but knows neither texts nor callers.)
    class Sql < Client
      # Set in the fiber: the running statement.
      INSIDE = :memprof_sql_statement
      # Maximum bytes of a statement that are parsed, plus one to detect a longer one.
      LOOKED_AT = (1 << 16) + 1
      NOTHING = [].freeze
      private_constant :INSIDE, :LOOKED_AT, :NOTHING

      # A running statement: its subscribers, start, notification, and enclosing statement.
      Call = Struct.new(:subscribers, :began, :waited, :event, :outer)
      # A statement that is not reported.
      SILENCED = Call.new(NOTHING).freeze
      private_constant :Call, :SILENCED

      class << self
        # Records a statement, unless it is nested: a query of Active Record through a client gem.
        def execute(text, adapter)
          call = start
          return yield unless call

          begin
            yield
          ensure
            finish(call, text, adapter)
          end
        end

        # Begins a statement; nil if no trace counts it.
        def start(event = nil)
          subscribers = running
          return if subscribers.empty?

          outer = Thread.current[INSIDE]
          return if outer && event.nil?

          Native.quiet do
            Thread.current[INSIDE] = Call.new(subscribers, Clock.now, Native.gvl_wait, event, outer)
          end
        end

        # Counts a statement that ran on another thread, for the traces of the thread that takes its result.
        def record_async(text, adapter, seconds)
          subscribers = running
          return if subscribers.empty?

          guard do
            thread = Thread.current
            subscribers.each do |one|
              one.record(self, thread) { |sql| sql.add(text, adapter, seconds) }
            end
          end
        end

        # Runs a block in which clients report nothing.
        def silence
          return yield if running.empty?

          outer = Thread.current[INSIDE]
          begin
            Thread.current[INSIDE] = SILENCED
            yield
          ensure
            Thread.current[INSIDE] = outer
          end
        end

        # Whether no trace counts the current work of a client gem.
        def ignored? = running.empty? || !Thread.current[INSIDE].nil?

        # Ends a statement; a second call does nothing. Returns the entries it was added to.
        def finish(call, text, adapter)
          entries = NOTHING
          guard { entries = add(call, text, adapter) } if call.began
          entries
        end

        # The same for callers that have a guard.
        def add(call, text, adapter)
          return NOTHING unless call.began

          Thread.current[INSIDE] = call.outer
          entries = []
          record(call.subscribers, call.began, call.waited) do |sql, time, _|
            entries << sql.add(text, adapter, time)
          end
          call.began = nil
          entries
        end

        def inside = INSIDE

        # A statement without its values.
        def normalize(text, adapter)
          text = text.to_s
          text = text.byteslice(0, LOOKED_AT) if text.bytesize > LOOKED_AT
          Native.normalize_sql(Printable.utf8(text), adapter)
        end

        # Errors here must not reach the program.
        def failed(error)
          return if @warned

          @warned = true
          warn "memprof: traces go without statements: #{error.message} (#{error.class})"
        end
      end

      def initialize
        super
        @statements = Statements.new
      end

      def add(text, adapter, time)
        @statements.add(text ? Sql.normalize(text, adapter) : Statements::UNKNOWN, time)
      end

      def report = @statements.report
    end
  end
end

require_relative "sql/active_record"
require_relative "sql/client_gems"
require_relative "sql/sqlite"
