# frozen_string_literal: true

# Tracked by bench/run.rb: the boot of a small Rails app. Writes the CPU time and the peak RSS of its process
# to the file BENCH_COSTS, last of all: finalizers run after `at_exit` blocks, and so after the report.

require "logger" # Rails 6.1 and 7.0 forget it
require "rails"
require "action_controller/railtie"
require "action_view/railtie"

# An app with one page.
class Shop < Rails::Application
  config.load_defaults "#{Rails::VERSION::MAJOR}.#{Rails::VERSION::MINOR}"
  config.eager_load = true
  config.secret_key_base = "0" * 64
  config.logger = Logger.new(IO::NULL)
  routes.append { resources :orders, only: %i[index show] }
end

Shop.initialize!

# Creates the finalizer here, where the object is not in scope: a block next to it would retain it.
module Costs
  def self.writer(file)
    pid = Process.pid
    ->(_) do
      next unless Process.pid == pid

      seconds = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      peak = File.foreach("/proc/self/status").grep(/\AVmHWM:/).first[/\d+/].to_i * 1024
      File.write(file, "#{seconds} #{peak}")
    end
  end
end

COSTS = Object.new
ObjectSpace.define_finalizer(COSTS, Costs.writer(ENV.fetch("BENCH_COSTS")))
