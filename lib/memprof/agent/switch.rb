# frozen_string_literal: true

module Memprof
  module Agent
    # Whether the agent starts in this process on its own: MEMPROF_AGENT=off wins over everything, and consoles,
    # generators, tasks and tests have no agent unless MEMPROF_AGENT=on asks for it.
    module Switch
      VARIABLE = "MEMPROF_AGENT"
      ON = %w[on true yes 1].freeze
      OFF = %w[off false no 0].freeze
      # Programs that end soon, or that a person sits at.
      PROGRAMS = %w[irb pry console rake rspec minitest bundle bundler gem rdbg byebug spring memprof].freeze
      # Commands of `rails`, all but those that serve or work.
      RAILS = %w[rails rails.rb].freeze
      RAILS_SERVES = %w[s server runner r].freeze
      private_constant :PROGRAMS, :RAILS, :RAILS_SERVES

      class << self
        # Whether it starts by itself.
        def on?(env = ENV, program: $PROGRAM_NAME, arguments: ARGV)
          return false if off?(env)

          asked?(env) || serves?(program, arguments)
        end

        # Whether MEMPROF_AGENT forbids it, even where the program calls Agent.start.
        def off?(env = ENV) = words(env).any? { |word| OFF.include?(word.downcase) }

        # Whether MEMPROF_AGENT asks for it in any kind of process.
        def asked?(env = ENV) = words(env).any? { |word| ON.include?(word.downcase) }

        # The settings in MEMPROF_AGENT, as `name=value`.
        def settings(env = ENV) = words(env).grep_v(/\A(?:#{Regexp.union(ON + OFF).source})\z/i)

        private

        def words(env) = env[VARIABLE].to_s.split(",").map(&:strip).reject(&:empty?)

        # Neither a console, nor a generator, a task or a test.
        def serves?(program, arguments)
          return false if defined?(IRB) && IRB.respond_to?(:CurrentContext) && IRB.CurrentContext
          return false if defined?(Rails::Console) || defined?(Rails::Generators)

          name = File.basename(program.to_s.split.first.to_s)
          return RAILS_SERVES.include?(arguments.find { |word| !word.start_with?("-") }) if RAILS.include?(name)

          !PROGRAMS.include?(name)
        end
      end
    end
  end
end
