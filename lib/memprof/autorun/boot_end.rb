# frozen_string_literal: true

module Memprof
  module Autorun
    # The end of a program's boot: its first request, example, test, job or task, or the call of
    # Memprof.booted. Loads nothing: it hooks into the classes below as the program defines them.
    class BootEnd
      # The method that runs each of them, by class name. Includes servers, as not every application has
      # middleware.
      FIRST = {
        "RSpec::Core::Example" => :run, "Minitest::Test" => :run, "Test::Unit::TestCase" => :run,
        "Puma::Server" => :process_client, "Unicorn::HttpServer" => :process_client,
        "WEBrick::HTTPServer" => :service, "Sidekiq::Processor" => :process,
        "Rake::Task" => :execute, "Rails::Engine" => :load_runner
      }.freeze
      # Rails boots in this task.
      BOOTS = { "Rake::Task" => ->(task) { task.name == "environment" } }.freeze
      NAME = Module.instance_method(:name)
      private_constant :FIRST, :BOOTS, :NAME

      # Calls the block once.
      def initialize(&finished)
        @finished = finished
        @lock = Mutex.new
        @left = FIRST.dup
      end

      def wait
        @definitions = TracePoint.new(:end) { |point| defined(point.self) }
        @definitions.enable
      end

      # Ends the boot. True the first time.
      def finish
        return false if @over

        @lock.synchronize do
          return false if @over

          @over = true
        end
        @definitions&.disable
        @finished.call
        true
      end

      private

      def defined(mod)
        return if @over || !(name = NAME.bind_call(mod)) || !(method = @left[name])
        return unless mod.method_defined?(method) || mod.private_method_defined?(method)

        @left.delete(name)
        mod.prepend(hook(method, mod.private_method_defined?(method), BOOTS[name]))
      end

      def hook(method, hidden, boots)
        boot = self
        Module.new do
          define_method(method) do |*arguments, &block|
            boot.finish unless boots&.call(self)
            super(*arguments, &block)
          end
          ruby2_keywords(method)
          private(method) if hidden
        end
      end
    end
  end
end
