# frozen_string_literal: true

module Memprof
  module Tracers
    class Sql < Client
      # Hooks into the gems pg, mysql2 and trilogy when used without Active Record, as by Sequel.
      module ClientGems
        # Maximum number of statements per connection whose texts are stored.
        PREPARED = 1000
        private_constant :PREPARED

        # Calls a client method that may yield the result: the block's work is not part of the statement.
        def self.execute(text, adapter, result)
          call = Sql.start
          return yield(result) unless call

          begin
            yield(result && ->(value) { Sql.finish(call, text, adapter) && result.call(value) })
          ensure
            Sql.finish(call, text, adapter)
          end
        end

        # Stores the text of a prepared statement.
        def self.prepared(object, name, text)
          Native.quiet do
            texts = object.instance_variable_get(:@memprof_statements)
            full = texts.nil? || texts.size >= PREPARED
            texts = object.instance_variable_set(:@memprof_statements, {}) if full
            texts[name.to_s] = text
          end
        rescue FrozenError
          nil
        end

        def self.text(object, name)
          object.instance_variable_get(:@memprof_statements)&.fetch(name.to_s, nil)
        end

        # Methods of PG::Connection that take the text, and those that take the name of a statement.
        TEXTS = %i[
          exec query async_exec async_query sync_exec exec_params async_exec_params sync_exec_params
        ].freeze
        NAMES = %i[exec_prepared async_exec_prepared sync_exec_prepared].freeze
        private_constant :TEXTS, :NAMES

        # Prepended to PG::Connection. (Methods defined by a Proc could not be called in a Ractor.)
        module Postgres
          TEXTS.each do |name|
            module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
              def #{name}(*arguments, &block)
                return super if Sql.running.empty?

                ClientGems.execute(arguments.first, "postgres", block) { |result| super(*arguments, &result) }
              end
            RUBY
          end

          NAMES.each do |name|
            module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
              def #{name}(*arguments, &block)
                return super if Sql.running.empty?

                text = ClientGems.text(self, arguments.first)
                ClientGems.execute(text, "postgres", block) { |result| super(*arguments, &result) }
              end
            RUBY
          end

          %i[prepare async_prepare sync_prepare].each do |name|
            module_eval(<<~RUBY, __FILE__, __LINE__ + 1)
              def #{name}(*arguments)
                ClientGems.prepared(self, *arguments.first(2)) unless Sql.running.empty? || arguments.size < 2
                super
              end
            RUBY
          end
        end

        # Prepended to Mysql2::Client.
        module Mysql2
          def query(sql, *, **)
            Sql.running.empty? ? super : Sql.execute(sql, "mysql") { super }
          end

          def prepare(sql)
            statement = super
            ClientGems.prepared(statement, "", sql) unless Sql.running.empty?
            statement
          end
        end

        # Prepended to Mysql2::Statement.
        module Mysql2Statement
          def execute(*, **)
            Sql.running.empty? ? super : Sql.execute(ClientGems.text(self, ""), "mysql") { super }
          end
        end

        # Prepended to Trilogy.
        module Trilogy
          def query(sql)
            Sql.running.empty? ? super : Sql.execute(sql, "mysql") { super }
          end
        end
      end
      private_constant :ClientGems

      hook "PG::Connection", ClientGems::Postgres
      hook "Mysql2::Client", ClientGems::Mysql2
      hook "Mysql2::Statement", ClientGems::Mysql2Statement
      hook "Trilogy", ClientGems::Trilogy
    end
  end
end
