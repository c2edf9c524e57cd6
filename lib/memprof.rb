# frozen_string_literal: true

# The gem's own file, which an application requires. `memprof run` and others load only the API before the
# application, so that this connects the agent and Rails when their time has come.
require_relative "memprof/api"

require_relative "memprof/railtie" if defined?(Rails::Railtie) && !defined?(Memprof::Railtie)
# MEMPROF_AGENT starts the agent in each program that loads memprof.
require "memprof/agent" if ENV.key?("MEMPROF_AGENT") && !defined?(Memprof::Agent)
