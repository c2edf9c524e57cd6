# frozen_string_literal: true

# The garbage collector as a test's tool.
module GCHelpers
  # Collects at every allocation while the block runs.
  def with_gc_stress
    before = GC.stress
    GC.stress = true
    yield
  ensure
    GC.stress = before
  end

  # Runs the block with the collector off, for exact counts of what is live.
  def without_gc
    was_disabled = GC.disable
    yield
  ensure
    GC.enable unless was_disabled
  end

  # Everything unreachable is gone after this, what is swept lazily included. A thing that the caller just let
  # go may still lie in a stale stack slot, so make it in a method or block of its own.
  def full_gc
    3.times { GC.start(full_mark: true, immediate_mark: true, immediate_sweep: true) }
  end
end
