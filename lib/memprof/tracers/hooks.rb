# frozen_string_literal: true

require_relative "../lock"

module Memprof
  module Tracers
    # Prepends modules to the classes of client gems, as soon as they are loaded: those loaded when a trace
    # begins are found by name, and during a trace each definition of a class or module triggers another look
    # at its `end`, when it has its methods. (The VM prepares for that once; then only the `end` of a class
    # costs something.)
    module Hooks
      @missing = {}
      @lock = Lock.new
      @watchers = 0
      @pins = 0

      class << self
        def add(constant, mod)
          @missing = @missing.merge(constant => [*@missing[constant], mod].freeze)
        end

        # Looks for loaded clients, and watches for later ones, until #finish is called as often as #start.
        def start
          @lock.synchronize do
            install
            @watchers += 1
            watch if @watchers == 1 && !@missing.empty? && watchable?
          end
        end

        def finish
          @lock.synchronize do
            @watchers -= 1 if @watchers.positive? # in a child the parent's traces end, too
            @watch.disable if @watchers.zero? && @watch&.enabled?
          end
        end

        # The same for a server, whose traces then only refresh: until #unpin is called as often.
        def pin
          start
          @lock.synchronize { @pins += 1 }
        end

        def unpin
          @lock.synchronize { @pins -= 1 if @pins.positive? }
          finish
        end

        def pinned? = @pins.positive?

        # Looks for clients loaded since the last time.
        def refresh
          @lock.synchronize { install } unless @features == $LOADED_FEATURES.size
        end

        # In the child of a fork: there are no traces.
        def after_fork
          @lock = Lock.new # its owner may be a thread that the child does not have
          @watchers = @pins = 0
          @watch&.disable
        end

        private

        # In Ruby 3.1 any TracePoint discards all code compiled by YJIT, each time.
        def watchable? = RUBY_VERSION >= "3.2" || !defined?(RubyVM::YJIT) || !RubyVM::YJIT.enabled?

        def watch
          @watch ||= TracePoint.new(:end) { |point| written(point.self) }
          @watch.enable
        end

        # Without the lock: a class may be defined anywhere, even by a thread that waits for the lock.
        def written(mod)
          constant = Native.quiet { Module.instance_method(:name).bind_call(mod) }
          Native.quiet { attach(mod, constant) } if @missing.key?(constant)
        end

        # Only after something else was loaded: a server creates a trace for each request.
        def install
          return if @features == $LOADED_FEATURES.size

          @features = $LOADED_FEATURES.size
          @missing.each_key do |constant|
            mod = find(constant)
            attach(mod, constant) if mod
          end
        end

        def attach(mod, constant)
          hooks = @missing[constant]
          @missing = @missing.reject { |other, _| other == constant }
          hooks&.each { |hook| mod.prepend(hook) unless mod.include?(hook) }
        end

        # Loads nothing: a constant to be autoloaded does not count as defined.
        def find(constant)
          constant.split("::").inject(Object) do |scope, name|
            break unless scope.is_a?(Module) && scope.const_defined?(name, false)
            break if scope.autoload?(name, false)

            scope.const_get(name, false)
          end
        end
      end
    end
  end
end
