# frozen_string_literal: true

require "puma/plugin"

# `plugin :memprof` in config/puma.rb starts memprof's agent in the processes that serve requests: in single
# mode in this one, in cluster mode in each worker when it boots, and not in the master.
# MEMPROF_AGENT has its settings, and settings in code replace it; see docs/agent.md.
Puma::Plugin.create do
  # Not `config(dsl)`: for a plugin that has it, puma drops the first setting of the file (5 to 8).
  def start(launcher)
    return start_agent unless (launcher.options[:workers] || 0).positive?

    launcher.config.configure do |_user, file, _default|
      # puma 7 has renamed it.
      hook = file.respond_to?(:before_worker_boot) ? :before_worker_boot : :on_worker_boot
      file.public_send(hook) { start_agent }
    end
  end

  private

  # An agent that cannot start says so, and the server goes on.
  def start_agent
    require "memprof/agent"
  rescue LoadError, StandardError => e
    warn "memprof: the agent is off: #{e.message.lines.first.to_s.chomp}"
  end
end
