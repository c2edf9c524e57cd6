# frozen_string_literal: true

require_relative "../internal_classes"
require_relative "../paths"
require_relative "../printable"
require_relative "../session"
require_relative "../support"

module Memprof
  class Trace
    # The lines that allocated most objects in a trace. Tracking each object costs more than counting it, so
    # this is off by default; `lines: 5` or the variable MEMPROF_TRACE_LINES turns it on.
    class Lines
      VARIABLE = "MEMPROF_TRACE_LINES"
      MOST = 1000
      # The tracer whose report lists them.
      TRACER = "objects"
      private_constant :VARIABLE, :MOST

      # Open sessions of this process.
      @open = {}.compare_by_identity

      class << self
        # The number of lines to list, or nil. `asked` is the program's setting, nil if it has none.
        def wanted(asked, plan)
          return from_environment(plan) if asked.nil?
          return if asked == false

          check(asked, "lines", asked.inspect)
          return asked if plan.native.include?(TRACER)

          raise ArgumentError, "lines: needs the tracer #{TRACER}"
        end

        # Registered first: however the thread ends, the session gets closed.
        def open(session)
          @open[session] = true
          session.open
        end

        def close(session)
          @open.delete(session)
          session.close
        end

        # For a trace that never finishes because its fiber is discarded. Created here, where the trace is not
        # in scope: the closure would retain it.
        def closer(session) = ->(_id) { close(session) }

        # In the child of a fork: these sessions are the parent's.
        def after_fork
          open = @open
          @open = {}.compare_by_identity
          open.each_key(&:close)
        end

        private

        def from_environment(plan)
          text = ENV.fetch(VARIABLE, "")
          return if text.empty? || text == "0"

          count = Integer(text, 10, exception: false)
          check(count, VARIABLE, text.inspect)
          count if plan.native.include?(TRACER)
        end

        def check(count, name, shown)
          return if count.is_a?(Integer) && count.between?(1, MOST)

          raise ArgumentError, "#{name} must be an Integer from 1 to #{MOST}, not #{shown}"
        end
      end

      def initialize(count, process)
        @count = count
        @session = Session.prepare(scope: process ? :process : :thread)
        ObjectSpace.define_finalizer(self, Lines.closer(@session))
      end

      def start = Lines.open(@session)

      def finish = @session.finish

      # As `[{ "location" => "app.rb:7 in Order#total", "class" => "String", "count" => 3, "bytes" => 120 }]`,
      # most objects first; or the error.
      def report
        Native.quiet { rows(@session.profile) }
      rescue StandardError => e
        { "error" => Printable.line("#{e.message} (#{e.class})") }
      end

      # Idempotent.
      def close
        Lines.close(@session)
        ObjectSpace.undefine_finalizer(self)
      end

      private

      def rows(profile)
        classes = profile.classes
        shown = classes.reject { |name| InternalClasses.of_vm?(name) }
        profile = profile.filter(nil, shown) unless shown.size == classes.size
        directory = Paths.working_directory
        profile.places("allocated", "objects", @count).last.map { |row| line(row, directory) }
      end

      def line(row, directory)
        method = Printable.line(row["method"])
        location = Printable.line(Paths.short("#{Printable.utf8(row["file"])}:#{row["line"]}", directory))
        location += " in #{method}" unless method.empty?
        objects, bytes = row["allocated"].values_at("objects", "bytes")
        { "location" => location, "class" => Printable.utf8(row["class"]), "count" => objects,
          "bytes" => bytes }
      end
    end
  end
end
