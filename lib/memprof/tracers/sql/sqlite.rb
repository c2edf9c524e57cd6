# frozen_string_literal: true

module Memprof
  module Tracers
    class Sql < Client
      # Hooks into the gem sqlite3 when used without Active Record. A statement is executed in steps, one per
      # row, and the program's work in between is not part of it.
      module Sqlite
        ADAPTER = "sqlite"
        private_constant :ADAPTER

        # Runs the first step of a statement. Also returns the entries that later steps add to.
        def self.first_step(text)
          call = Sql.start
          row = yield
          [row, Sql.finish(call, text, ADAPTER)]
        rescue StandardError
          Sql.finish(call, text, ADAPTER)
          raise
        end

        def self.next_step(executions)
          began = Clock.now
          begin
            yield
          ensure
            time = Clock.now - began
            Native.quiet { executions.each { |execution| execution.more(time) } }
          end
        end

        # Prepended to SQLite3::Statement.
        module Steps
          # Takes the first statement of a text with several.
          def initialize(database, sql, *)
            super
            return if Sql.ignored?

            Native.quiet do
              size = sql.to_s.bytesize - remainder.to_s.bytesize
              @memprof_sql = sql.to_s.byteslice(0, [size, 0].max)
            end
          end

          def step
            return Sqlite.next_step(@memprof_executions) { super } if @memprof_executions
            return super if Sql.ignored?

            row, @memprof_executions = Sqlite.first_step(@memprof_sql) { super }
            row
          end

          def reset!
            @memprof_executions = nil if @memprof_executions
            super
          end
        end

        # Prepended to SQLite3::Database: batches of statements, run by the library itself.
        module Batches
          def execute_batch2(sql, *)
            Sql.running.empty? ? super : Sql.execute(sql, ADAPTER) { super }
          end
        end
      end
      private_constant :Sqlite

      hook "SQLite3::Statement", Sqlite::Steps
      hook "SQLite3::Database", Sqlite::Batches
    end
  end
end
