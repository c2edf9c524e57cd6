# frozen_string_literal: true

module Memprof
  module Agent
    # Whether an agent starts in this process by itself: MEMPROF_AGENT=off wins over everything, and consoles,
    # generators, tasks and tests have none unless MEMPROF_AGENT=on asks for it.
    module Switch
      VARIABLE = "MEMPROF_AGENT"
      # The name of the agent's thread, by which other processes see that it runs: at most 15 bytes.
      THREAD = "memprof agent"
      ON = %w[on true yes 1].freeze
      OFF = %w[off false no 0].freeze
      # Programs that start others, and memprof's own command.
      NEVER = %w[bundle bundler gem memprof].freeze
      # Programs that soon end, or that a person sits at.
      UNLESS_ASKED = %w[irb pry rdbg byebug console rake rspec minitest spring].freeze
      # Commands of `rails` that serve. Rails takes the command from ARGV before it loads the application, and
      # has defined one of these classes then.
      SERVING = %w[s server r runner].freeze
      SERVING_CLASSES = %w[Rails::Server Rails::Command::RunnerCommand].freeze
      private_constant :NEVER, :UNLESS_ASKED, :SERVING, :SERVING_CLASSES

      class << self
        def on?(env = ENV, program: $PROGRAM_NAME, arguments: ARGV)
          name = File.basename(program.to_s.scrub.split.first.to_s)
          return false if off?(env) || NEVER.include?(name)

          asked?(env) || (!console? && serves?(name, arguments))
        end

        # Whether MEMPROF_AGENT forbids an agent, even where the program starts one.
        def off?(env = ENV) = words(env).any? { |word| OFF.include?(word.downcase) }

        # Whether MEMPROF_AGENT asks for an agent in any kind of process.
        def asked?(env = ENV) = words(env).any? { |word| ON.include?(word.downcase) }

        # The settings in MEMPROF_AGENT, as `name=value`.
        def settings(env = ENV) = words(env).reject { |word| [*ON, *OFF].include?(word.downcase) }

        private

        def words(env) = env[VARIABLE].to_s.scrub.split(",").map(&:strip).reject(&:empty?)

        def console?
          return true if defined?(::Rails::Console)

          defined?(::IRB.CurrentContext) && ::IRB.CurrentContext ? true : false
        end

        def serves?(name, arguments)
          return !UNLESS_ASKED.include?(name) unless name == "rails"
          return true if SERVING.include?(arguments.first)

          SERVING_CLASSES.any? { |serving| Object.const_defined?(serving) }
        end
      end
    end
  end
end
