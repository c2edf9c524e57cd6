# frozen_string_literal: true

module Memprof
  module Tracers
    class Sql < Client
      # Subscribes to the notifications of Active Record, which include the text of prepared statements.
      module ActiveRecord
        EVENT = "sql.active_record"
        private_constant :EVENT

        class << self
          # Called once, when Active Record's adapters are loaded.
          def prepended(_)
            super
            ::ActiveSupport::Notifications.subscribe(EVENT, self)
          end

          # A hit in the query cache does not reach the database.
          def start(_name, _id, payload)
            return if payload[:cached] || Sql.running.empty?

            begin
              Sql.guard { Sql.start(payload) }
              started = true
            ensure
              Sql.abandon(payload) unless started # interrupted: no notification ends it
            end
          end

          def finish(_name, _id, payload)
            call = Sql.call_of(payload)
            Sql.guard { Sql.add(call, payload[:sql], adapter(payload[:connection])) } if call
          end

          # Called for a query of load_async, which another thread sent, when this thread takes its result.
          def publish_event(event)
            payload = event.payload
            return if payload[:cached] || Sql.running.empty?

            Sql.guard do
              Sql.record_async(payload[:sql], adapter(payload[:connection]), event.duration / 1000.0)
            end
          end

          private

          def adapter(connection) = connection.respond_to?(:adapter_name) ? connection.adapter_name.to_s : ""
        end
      end
      private_constant :ActiveRecord

      # Prepended to the buffer of load_async's notifications, used until its result is taken: the client gem
      # must not report the same query.
      module Async
        def instrument(*) = Sql.silence { super }
      end
      private_constant :Async

      hook "ActiveRecord::FutureResult::EventBuffer", Async
      hook "ActiveRecord::ConnectionAdapters::AbstractAdapter", ActiveRecord
    end
  end
end
