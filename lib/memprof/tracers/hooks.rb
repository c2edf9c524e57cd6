# frozen_string_literal: true

require_relative "../lock"

module Memprof
  module Tracers
    # Prepends modules to the classes of client gems, as soon as these are there: those that are loaded when
    # a trace begins are found by name, and while a trace runs each class or module that is defined is a sign
    # to look again: at its end, when it has its methods. (The VM makes ready for that once; then it costs
    # nothing but at the `end` of a class.)
    module Hooks
      @missing = {}
      @lock = Lock.new
      @watchers = 0
      @pins = 0

      class << self
        def add(constant, mod)
          @missing = @missing.merge(constant => [*@missing[constant], mod].freeze)
        end

        # Looks for what is loaded, and watches for what will be, until as many finish as start.
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

        # The same for a server, whose traces then only refresh: until as many unpin.
        def pin
          start
          @lock.synchronize { @pins += 1 }
        end

        def unpin
          @lock.synchronize { @pins -= 1 if @pins.positive? }
          finish
        end

        def pinned? = @pins.positive?

        # Looks for what was loaded since the last time.
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

        # In Ruby 3.1 any TracePoint throws away all that YJIT has compiled, each time.
        def watchable? = RUBY_VERSION >= "3.2" || !defined?(RubyVM::YJIT) || !RubyVM::YJIT.enabled?

        def watch
          @watch ||= TracePoint.new(:end) { |point| written(point.self) }
          @watch.enable
        end

        # Not under the lock: a class may be defined anywhere, also by a thread that waits for it.
        def written(mod)
          constant = Native.quiet { Module.instance_method(:name).bind_call(mod) }
          Native.quiet { attach(mod, constant) } if @missing.key?(constant)
        end

        # Not again before something else was loaded: a server makes a trace for each request.
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

        # Loads nothing: a constant that would be autoloaded is not there yet.
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
