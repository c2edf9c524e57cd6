# frozen_string_literal: true

# Controls the GC in tests.
module GCHelpers
  # Runs the GC on every allocation in the block.
  def with_gc_stress
    before = GC.stress
    GC.stress = true
    yield
  ensure
    GC.stress = before
  end

  # Runs the block with GC disabled, for exact counts of live objects.
  def without_gc
    was_disabled = GC.disable
    yield
  ensure
    GC.enable unless was_disabled
  end

  # Frees everything unreachable, including lazily swept objects. A stale stack slot may still reference an
  # object that the caller just dropped, so allocate it in a separate method or block.
  def full_gc
    3.times { GC.start(full_mark: true, immediate_mark: true, immediate_sweep: true) }
  end
end
