# frozen_string_literal: true

module Memprof
  module Malloc
    # Finds the VM's functions on native stacks, by experiment: the one that runs Ruby code, which appears
    # once for each call from native code to Ruby, and those between it and the C functions that Ruby calls.
    # Libraries don't export their names.
    class InterpreterFunctions
      # A comparison is a C method that calls Ruby.
      class Probe
        include Comparable

        attr_reader :stack

        def <=>(_other)
          @stack = Native::Malloc.native_stack
          0
        end
      end
      private_constant :Probe

      # Passes its results to the recorder, once: later a JIT may have compiled the experiment, too.
      #
      # A stack is an Array of functions, innermost first, each identified by its address, and the number of
      # calls from native code to Ruby in it. On a separate thread, none of them begins in JIT code of the
      # caller, beyond which a stack can't be unwound.
      def self.find
        @find ||= new(Thread.new { stacks }.value).find
      end

      def self.stacks
        {
          here: Native::Malloc.native_stack,
          block: call_block { Native::Malloc.native_stack },
          nested: call_block { call_block { Native::Malloc.native_stack } },
          method: Probe.new.tap { |probe| probe.between?(probe, probe) }.stack
        }
      end
      private_class_method :stacks

      # Calls the block from a C method.
      def self.call_block
        result = nil
        "a".each_char { result = yield }
        result
      end
      private_class_method :call_block

      # The number of calls to Ruby beyond those here.
      CALLS = { block: 1, nested: 2, method: 1 }.freeze
      private_constant :CALLS

      def initialize(stacks)
        @functions = stacks.transform_values(&:first)
        @calls = stacks.transform_values(&:last)
      end

      def find
        run = @functions[:here].reverse.find { |function| runs_ruby?(function) }
        unless run && @calls.all? { |name, calls| @functions[name].count(run) == calls }
          raise Unsupported,
            "native frames cannot be recorded: the VM's functions were not found on the stack"
        end

        Native::Malloc.interpreter_functions(run, @functions[:here].take_while { |function| function != run })
        true
      end

      private

      def runs_ruby?(function)
        @functions[:here].count(function) == 1 &&
          CALLS.all? { |name, calls| @functions[name].count(function) == 1 + calls }
      end
    end
  end
end
