# frozen_string_literal: true

module Memprof
  module Boot
    # Hooks into the methods that load files: Kernel#require, #require_relative, #load and Module#autoload.
    #
    # Uses aliases, as RubyGems, bootsnap and Zeitwerk do, and not a prepended module: their aliases would
    # pick up the prepended method, and the two would recurse forever. The frames are `<internal:`, like those
    # of RubyGems, so that `warn(uplevel:)` and others skip them.
    module Requires
      FILE = "<internal:memprof/boot>"

      # Kernel's are private methods and, as `Kernel.require`, public methods of the module.
      REQUIRE = <<~RUBY
        alias_method :require_without_memprof, :require

        def require(path)
          name = ::Memprof::Boot::Requires.name(path)
          node = name && ::Memprof::Boot::BootRecorder.enter(:require, name)
          return require_without_memprof(path) unless node

          begin
            loaded = require_without_memprof(path)
          ensure
            ::Memprof::Boot::BootRecorder.leave(node, loaded)
          end
        end
      RUBY

      LOAD = <<~RUBY
        alias_method :load_without_memprof, :load

        def load(path, *wrap)
          name = ::Memprof::Boot::Requires.name(path)
          node = name && ::Memprof::Boot::BootRecorder.enter(:load, name)
          return load_without_memprof(path, *wrap) unless node

          begin
            loaded = load_without_memprof(path, *wrap)
          ensure
            ::Memprof::Boot::BootRecorder.leave(node, loaded)
          end
        end
      RUBY

      # The original looks next to its caller's file, so it cannot be called from here.
      RELATIVE = <<~RUBY
        alias_method :require_relative_without_memprof, :require_relative

        def require_relative(path)
          caller = ::Kernel.caller_locations(1, 1).first
          base = caller.absolute_path || caller.path
          if base.nil? || base.start_with?("(eval")
            raise ::LoadError, "cannot infer basepath"
          end

          path = ::File.path(path)
          require(::File.absolute_path(path, ::File.dirname(base)))
        end
      RUBY

      AUTOLOAD = <<~RUBY
        alias_method :autoload_without_memprof, :autoload

        def autoload(name, path)
          ::Memprof::Boot::BootRecorder.autoload(path)
          autoload_without_memprof(name, path)
        end
      RUBY
      # To stop older RubyGems from activating gems, Bundler restores Kernel's `require` in C. That discards
      # two hooks, RubyGems' and this one, which is installed again.
      module Reinstallation
        private

        def method_added(name)
          super
          Requires.reinstall(self) if name == :require
        end

        def singleton_method_added(name)
          super
          Requires.reinstall(singleton_class) if name == :require
        end
      end

      # The name of a nonexistent file; {lost?} uses it to check whether `require` still calls this hook.
      PROBE = "memprof/boot/probe"
      private_constant :FILE, :REQUIRE, :LOAD, :RELATIVE, :AUTOLOAD, :Reinstallation, :PROBE

      def self.install
        privately = "private :require, :require_without_memprof, :load, :load_without_memprof, " \
                    ":require_relative, :require_relative_without_memprof"
        Kernel.module_eval("#{REQUIRE}#{LOAD}#{RELATIVE}#{privately}", FILE)
        Kernel.singleton_class.class_eval("#{REQUIRE}#{LOAD}", FILE)
        Module.class_eval("#{AUTOLOAD}private :autoload_without_memprof", FILE)
        Kernel.extend(Reinstallation)
      end

      # Only a C method is the original: other tools define `require` in Ruby, and call the one they find.
      def self.reinstall(owner)
        return if owner.instance_method(:require).source_location

        BootRecorder.quietly do
          # Ruby redefines an aliased method without a warning.
          owner.alias_method(:require_without_memprof, :require_without_memprof)
          owner.module_eval(REQUIRE, FILE)
          owner.module_eval("private :require, :require_without_memprof", FILE) if owner.equal?(Kernel)
        end
      end

      # Whether something else replaced the hook.
      def self.lost?
        catch(PROBE) do
          require(PROBE)
        rescue LoadError
          true
        end
      end

      # The path as a String, or nil if it is invalid: `require` has the better message.
      def self.name(path)
        throw(PROBE, false) if PROBE == path
        return path if path.is_a?(String)

        path.to_path.to_s if path.respond_to?(:to_path)
      end
    end
  end
end
