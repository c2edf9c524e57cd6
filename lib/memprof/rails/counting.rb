# frozen_string_literal: true

require_relative "../agent/work"
require_relative "unit"

module Memprof
  module Rails
    # Counts what each action and each job costs, for the log and for Agent::Work. A failure in here never
    # becomes the application's.
    module Counting
      # Of the fiber, as Thread#[] is: a request of falcon has its own. So a query by another fiber or thread
      # that the request starts is not the request's.
      UNIT = :__memprof_unit
      private_constant :UNIT

      # Included in controllers.
      module Action
        private

        # Around Rails' own, which ends the payload and the log line.
        def process_action(*)
          Counting.around(:action, -> { "#{self.class.name}##{action_name}" }) { super }
        end

        def append_info_to_payload(payload)
          super
          Counting.note(payload)
        end
      end

      # Extends the class of controllers, which writes the end of the log line from here.
      module LogLine
        def log_process_action(payload)
          messages = super
          objects = payload[:memprof_objects]
          messages << "Allocated objects: #{objects}" if objects && messages.respond_to?(:<<)
          messages
        end
      end

      class << self
        def controllers(base)
          base.prepend(Action)
          base.singleton_class.prepend(LogLine) if base.respond_to?(:log_process_action)
        end

        def jobs(base)
          @jobs = true
          base.around_perform { |job, block| Counting.around(:job, -> { job.class.name }) { block.call } }
        end

        # Whether Active Job's jobs are counted.
        def jobs? = @jobs || false

        # Counts queries from now on.
        def queries
          return if @queries

          @queries = true
          ::ActiveSupport::Notifications.subscribe("sql.active_record") do |*, payload|
            Thread.current[UNIT]&.query unless payload[:name] == "SCHEMA" || payload[:cached]
          end
        end

        # Counts a block. `name` is called at its end; nil counts nothing.
        def around(kind, name)
          outer = Thread.current[UNIT]
          unit = Thread.current[UNIT] = Unit.start(outer)
          yield
        ensure
          Thread.current[UNIT] = outer
          guard { finish(unit, kind, name) if unit }
        end

        # The numbers so far, as the action has not ended yet.
        def note(payload)
          guard do
            objects = Thread.current[UNIT]&.so_far
            payload[:memprof_objects] = objects if objects
          end
        end

        private

        def finish(unit, kind, name)
          unit.finish
          found = name.call
          unit.record(kind, found, sql: @queries ? unit.sql : nil) if found
        end

        def guard
          yield
        rescue StandardError
          nil
        end
      end
    end
  end
end
