# frozen_string_literal: true

# What bench/run.rb tracks: the boot of a small Rails app. Writes the CPU time and the peak RSS of its process
# to the file BENCH_COSTS, after all else: finalizers run behind what `at_exit` registered, and so behind the
# report.

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

# Its finalizer is made here, where the object is not in sight: a block beside it would keep it alive.
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
