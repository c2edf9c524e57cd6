# frozen_string_literal: true

require_relative "values"

module Memprof
  module Dump
    # Global variables and their values.
    module Globals
      # These belong to the frame that reads them, some under a second name, and say nothing here.
      OF_A_FRAME = %i[$~ $& $` $' $+ $_ $LAST_MATCH_INFO $MATCH $PREMATCH $POSTMATCH $LAST_PAREN_MATCH
        $LAST_READ_LINE].freeze
      # To read these is to be warned.
      DEPRECATED = %i[$= $IGNORECASE $KCODE $-K $SAFE].freeze
      # To read this takes the next file off ARGV, and opens it.
      TAKES_AN_ARGUMENT = %i[$FILENAME].freeze
      SKIPPED = (OF_A_FRAME + DEPRECATED + TAKES_AN_ARGUMENT).freeze
      # These have another value while they are read.
      VERBOSITY = {
        :$VERBOSE => :itself.to_proc, :$-v => :itself.to_proc, :$-w => :itself.to_proc,
        :$-W => ->(verbose) { [nil, false, true].index(verbose) }
      }.freeze
      private_constant :OF_A_FRAME, :DEPRECATED, :TAKES_AN_ARGUMENT, :SKIPPED, :VERBOSITY

      class << self
        # What interrupts the program meanwhile (`Timeout`) waits: it would be taken for what a getter raises.
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
          raise # Ctrl-C does not wait
        rescue Exception # rubocop:disable Lint/RescueException -- a getter of C code may raise what it likes
          nil
        end

        # Ruby has no other way. The names are Ruby's own list, nothing that was written by anybody.
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
