# frozen_string_literal: true

module Memprof
  module CLI
    # `memprof console`: IRB with a heap.
    class Console < HeapCommand
      SUMMARY = "opens IRB with the heap of a dump"
      USAGE = "[OPTIONS] FILE | BEFORE AFTER"
      DETAILS = <<~TEXT
        In IRB, `heap` is the heap of FILE. With two dumps, `before` and `after` are
        their heaps, `diff` compares them, and `heap` is `after`. Input may be a pipe.

        Examples:
          memprof console heap.memprof
          echo 'heap.where("class = Order").size' | memprof console heap.memprof
      TEXT

      def call(arguments)
        files = expect_arguments(arguments, "FILE", "[AFTER]")
        files.each { |file| check_readable(file) }
        load_irb
        heaps = files.map { |file| open_heap(file) }
        names = heaps.one? ? { heap: heaps.first } : two(heaps)
        greet(files, names.keys)
        run(room(names))
        0
      end

      private

      def two(heaps) = { before: heaps.first, after: heaps.last, diff: compare(heaps), heap: heaps.last }

      # Loaded only here: it is large, and since Ruby 4.0 a gem of its own.
      def load_irb
        require "irb"
      rescue LoadError
        raise UsageError, "console needs irb: gem install irb"
      end

      def greet(files, names)
        if names.include?(:diff)
          @terminal.hint("before is #{files.first}, after is #{files.last}; try diff.grown(limit: 3)")
        else
          @terminal.hint("heap is #{files.first}; try puts heap.leaks[:findings].map { _1[:sentence] }")
        end
      end

      # A binding that contains only the names.
      def room(names)
        object = Object.new
        %i[inspect to_s].each { |name| object.define_singleton_method(name) { "memprof" } } # for the prompt
        room = object.instance_eval { binding }
        names.each { |name, value| room.local_variable_set(name, value) }
        room
      end

      def run(room)
        ARGV.clear # IRB would read them as files
        IRB.setup(nil, argv: [])
        IRB.conf.update(PROMPT_MODE: :NULL, INSPECT_MODE: :p, VERBOSE: false) unless $stdin.tty?
        irb = IRB::Irb.new(IRB::WorkSpace.new(room))
        irb.run(IRB.conf)
      end
    end
  end
end
