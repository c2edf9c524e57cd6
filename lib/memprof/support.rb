# frozen_string_literal: true

module Memprof
  # Which Rubies can be tracked, and how well.
  module Support
    # Rubies whose hook for new objects crashes in any program (https://bugs.ruby-lang.org/issues/19482).
    BROKEN_HOOKS = %w[3.2.0 3.2.1 3.2.2].freeze

    module_function

    # Raises if this Ruby can't be tracked; warns, once, if it can in part.
    def check
      @check ||= begin
        refuse
        true
      end
      warn_of_ractors if !@warned && ractors?
    end

    def refuse
      if BROKEN_HOOKS.include?(RUBY_VERSION)
        raise Unsupported,
          "Ruby #{RUBY_VERSION} crashes when allocations are tracked (Bug #19482): use 3.2.3 or later"
      end
      return if Native.gc_name == "default"

      raise Unsupported, "allocations can't be tracked under the #{Native.gc_name} garbage collector: " \
                         "run Ruby with its default one (unset RUBY_GC_LIBRARY)"
    end

    # Before Ruby 4.0 the VM's hooks belong to one Ractor, and end for all when a Ractor does.
    def ractors?
      RUBY_VERSION < "4" && (Native.ractors_seen? || Ractor.count > 1)
    end

    # Said once: the VM called no hook for a while, and does again.
    def warn_of_lost_hook
      return if @warned_of_lost_hook

      @warned_of_lost_hook = true
      warn "memprof: Ruby #{RUBY_VERSION} turned tracking off when a Ractor was freed (Bug #19112, fixed " \
           "in Ruby 4.0): objects that were allocated since are missing. Tracking goes on from here."
    end

    def warn_of_ractors
      @warned = true
      crash = " may crash (Bug #18464, mended in 3.1.4) and" if RUBY_VERSION < "3.1.4"
      warn "memprof: Ractors are running: Ruby #{RUBY_VERSION}#{crash} reports only the objects of the " \
           "Ractor that started tracking, and of none once a Ractor has ended (Bug #19112). " \
           "Ruby 4.0 reports all."
    end
  end
  private_constant :Support
end
