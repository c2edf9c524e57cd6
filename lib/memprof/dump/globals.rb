# frozen_string_literal: true

require_relative "values"

module Memprof
  module Dump
    # Global variables and their values.
    module Globals
      # These belong to the frame that reads them, some under a second name, and are meaningless here.
      OF_A_FRAME = %i[$~ $& $` $' $+ $_ $LAST_MATCH_INFO $MATCH $PREMATCH $POSTMATCH $LAST_PAREN_MATCH
        $LAST_READ_LINE].freeze
      # Reading these prints a warning.
      DEPRECATED = %i[$= $IGNORECASE $KCODE $-K $SAFE].freeze
      # Reading this takes the next file off ARGV, and opens it.
      TAKES_AN_ARGUMENT = %i[$FILENAME].freeze
      SKIPPED = (OF_A_FRAME + DEPRECATED + TAKES_AN_ARGUMENT).freeze
      # These change while they are read.
      VERBOSITY = {
        :$VERBOSE => :itself.to_proc, :$-v => :itself.to_proc, :$-w => :itself.to_proc,
        :$-W => ->(verbose) { [nil, false, true].index(verbose) }
      }.freeze
      private_constant :OF_A_FRAME, :DEPRECATED, :TAKES_AN_ARGUMENT, :SKIPPED, :VERBOSITY

      class << self
        # Defers interrupts (`Timeout`): they would be mistaken for an exception of a getter.
        def read
          names = (global_variables - SKIPPED).grep_v(/\A\$\d/)
          Thread.handle_interrupt(Object => :never) do
            silently { |verbose| names.filter_map { |name| entry(name, verbose) } }
          end
        end

        def json(globals, options)
          JSON.generate(_id: "globals", type: "globals",
            variables: Values.table(globals, contents: options.contents?))
        end

        private

        def entry(name, verbose)
          [name.name, VERBOSITY.fetch(name) { ->(_) { value(name) } }.call(verbose)]
        rescue SignalException
          raise # Ctrl-C takes effect at once
        rescue Exception # rubocop:disable Lint/RescueException -- a getter of C code may raise what it likes
          nil
        end

        # Ruby has no other way. The names come from Ruby's own list, not from user input.
        def value(name)
          eval(name.name, binding, __FILE__, __LINE__) # rubocop:disable Security/Eval
        end

        def silently
          verbose = $VERBOSE
          $VERBOSE = nil
          yield(verbose)
        ensure
          $VERBOSE = verbose
        end
      end
    end
  end
end
