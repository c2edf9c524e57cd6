# frozen_string_literal: true

module Memprof
  module Testing
    # What the VM keeps of a block that has run, though no program could reach it or would want to: without
    # care for it a block that retains nothing would seem to, now and then or always.
    module Leftovers
      # The collector takes what looks like an address on the machine stack for a reference, also where C
      # functions that have returned left it. So the block runs so many C calls deeper than the collection,
      # and that place is cleared.
      DEPTH = 8
      private_constant :DEPTH

      def self.run_deep(depth = DEPTH, &work)
        return yield if depth.zero?

        # Calls from Ruby to Ruby take no machine stack; a block that C calls does, and `catch` is always C.
        catch { run_deep(depth - 1, &work) }
      end

      # Forgets what lies where .run_deep worked, and the last value that another Fiber gave to this one.
      def self.drop
        Fiber.new { nil }.resume
        Native.clear_stack
      end

      # Notes the last match (`$~`) of the method that the block stands in: its next one would stay there as
      # long as the method runs, which is after all that is measured here.
      def self.last_match(block)
        block.binding.eval("match = $~; -> { $~ = match }", __FILE__, __LINE__)
      rescue ArgumentError
        -> {} # a Symbol or a Method as a block has no such place
      end
    end
  end
end
