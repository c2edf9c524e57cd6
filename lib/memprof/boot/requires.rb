# frozen_string_literal: true

module Memprof
  module Boot
    # Hooks into what loads files: Kernel#require, #require_relative, #load and Module#autoload.
    #
    # By aliases, as RubyGems, bootsnap and Zeitwerk do it, and not by a prepended module: their aliases would
    # find that one, and the two would call each other without end. The frames are `<internal:`, like those of
    # RubyGems, so that `warn(uplevel:)` and others look past them.
    module Requires
      FILE = "<internal:memprof/boot>"

      # Kernel's are private methods and, as `Kernel.require`, public ones of the module.
      LOADERS = <<~RUBY
        alias_method :require_without_memprof, :require
        alias_method :load_without_memprof, :load

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

      # It finds the file beside the one that called it, so it cannot be called from here.
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
      private_constant :FILE, :LOADERS, :RELATIVE, :AUTOLOAD

      def self.install
        privately = "private :require, :require_without_memprof, :load, :load_without_memprof, " \
                    ":require_relative, :require_relative_without_memprof"
        Kernel.module_eval("#{LOADERS}#{RELATIVE}#{privately}", FILE)
        Kernel.singleton_class.class_eval(LOADERS, FILE)
        Module.class_eval("#{AUTOLOAD}private :autoload_without_memprof", FILE)
      end

      # The path as a String, nil if it is none, which `require` says better.
      def self.name(path)
        return path if path.is_a?(String)

        path.to_path.to_s if path.respond_to?(:to_path)
      end
    end
  end
end
