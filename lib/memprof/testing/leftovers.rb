# frozen_string_literal: true

module Memprof
  module Testing
    # References that the VM retains after a block has run, though the program can't reach them: without
    # handling these, a block that retains nothing would seem to, sometimes or always.
    module Leftovers
      # The GC treats anything on the machine stack that looks like an address as a reference, even where
      # returned C functions left it. So the block runs this many C calls deeper than the GC, and that part of
      # the stack is cleared.
      DEPTH = 8
      private_constant :DEPTH

      def self.run_deep(depth = DEPTH, &work)
        return yield if depth.zero?

        # Calls from Ruby to Ruby take no machine stack; a block that C calls does, and `catch` is always C.
        catch { run_deep(depth - 1, &work) }
      end

      # Clears the stack where .run_deep worked, and the last value that another Fiber passed to this one.
      def self.drop
        Fiber.new { nil }.resume
        Native.clear_stack
      end

      # Saves the last match (`$~`) of the method that contains the block: a new one would be retained as long
      # as the method runs, which is beyond the end of the measurement.
      def self.last_match(block)
        block.binding.eval("match = $~; -> { $~ = match }", __FILE__, __LINE__)
      rescue ArgumentError
        -> {} # a Symbol or a Method as a block has no such variable
      end
    end
  end
end
