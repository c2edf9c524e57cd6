# frozen_string_literal: true

require_relative "../paths"
require_relative "frames"
require_relative "values"

module Memprof
  module Dump
    # The facts about each thread, for its line.
    module Threads
      FRAMES = 100
      # Thread's own methods: a subclass may override these names.
      METHODS = %i[status name priority group keys [] thread_variables thread_variable_get backtrace_locations
        native_thread_id].to_h { |name| [name, Thread.instance_method(name)] }.freeze
      private_constant :FRAMES, :METHODS

      class << self
        def facts(options)
          Thread.list.each_with_object({}.compare_by_identity) do |thread, facts|
            facts[thread] = JSON.generate(describe(thread, options.contents?))
          rescue ThreadError
            nil # the thread has ended
          end
        end

        private

        def describe(thread, contents)
          state(thread).merge(variables(thread, contents), backtrace: backtrace(thread, contents)).compact
        end

        def state(thread)
          group = ask(thread, :group)
          {
            status: status(ask(thread, :status)), name: text(ask(thread, :name)),
            priority: ask(thread, :priority), main: thread.equal?(Thread.main) || nil,
            current: thread.equal?(Thread.current) || nil, group: group && Values.address(group),
            native_thread_id: ask(thread, :native_thread_id)
          }
        end

        # In words: Ruby returns false for a thread that has ended and nil for one that raised.
        def status(status)
          case status
          when false then "dead"
          when nil then "raised"
          else status
          end
        end

        def variables(thread, contents)
          {
            variables: table(thread, :keys, :[], contents),
            thread_variables: table(thread, :thread_variables, :thread_variable_get, contents)
          }
        end

        def table(thread, list, read, contents)
          pairs = ask(thread, list).map { |name| [name, ask(thread, read, name)] }
          Values.table(pairs, contents: contents) unless pairs.empty?
        end

        def backtrace(thread, contents)
          locations = ask(thread, :backtrace_locations, 0, FRAMES)
          locations = locations&.drop_while { |location| Paths.own?(Printable.utf8(location.to_s)) }
          locations&.map { |location| Frames.line(location, contents) }
        end

        def text(name) = name && Printable.utf8(name)

        def ask(thread, name, *arguments) = METHODS.fetch(name).bind_call(thread, *arguments)
      end
    end
  end
end
