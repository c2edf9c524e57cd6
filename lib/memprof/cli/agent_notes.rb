# frozen_string_literal: true

require_relative "../agent/directory"
require_relative "../agent/switch"
require_relative "../agent/trends/named"
require_relative "../agent/trends/pool"
require_relative "../printable"
require_relative "../units"

module Memprof
  module CLI
    # What the agent of a running process knows, as lines for people. A process with memprof/signal is asked;
    # of others, the agent's files are read, where the process's environment says that they are. Nothing in
    # an answer or a file is believed to have the form that the agent gives it.
    class AgentNotes
      SECONDS = 5 # for an answer
      LEAKS = 5
      LONGEST = 400 # characters of a line
      NAMED = /\A#{Regexp.escape(Agent::Trends::Pool::NAMED)}\z/
      private_constant :SECONDS, :LEAKS, :LONGEST, :NAMED

      # The lines about processes that run the same code: all agents of a service know the same leaks, so the
      # first one is asked. Empty without an agent.
      def self.of(targets)
        agents = targets.select(&:agent?)
        agents.empty? ? [] : new(agents.first, also: agents.drop(1).map(&:pid)).lines
      end

      def initialize(target, also: [])
        @target = target
        @also = also
      end

      def lines
        lines = [heading, *attempt { leaks }, attempt { profiles }, attempt { evidence }].compact
        lines.map { |line| Printable.line(line).slice(0, LONGEST) }
      end

      private

      def attempt
        yield
      rescue StandardError
        nil # another form, or gone
      end

      def heading
        pids = [@target.pid, *@also]
        agents = pids.one? ? "process #{pids.first} runs" : "processes #{pids.join(", ")} run"
        ["#{agents} memprof's agent", attempt { interval } || missing].compact.join("; ")
      end

      def missing
        return "it has not loaded memprof/signal, so its intervals are unknown here" unless @socket

        "its first interval has not ended yet" if state && state["intervals"] == []
      end

      # The answer to `{"do":"agent"}`; nil if the process has no socket, or another memprof.
      def state
        return @state if defined?(@state)

        @state = attempt do
          client = @target.connect
          @socket = !client.nil?
          begin
            client&.ask({ do: "agent" }, seconds: SECONDS)&.fetch("agent")
          ensure
            client&.close
          end
        end
        @state = nil unless @state.is_a?(Hash)
        @state
      end

      def interval
        found = state&.fetch("intervals")&.last or return
        ended = Time.at(found.fetch("started_at") + found.fetch("duration")).strftime("%H:%M:%S")
        allocated, retained = found.values_at("allocated", "retained").map do |amount|
          Units.objects(*amount.values_at("objects", "bytes").map { |number| Integer(number) })
        end
        rss = ", RSS #{Units.bytes(Integer(found["rss"]))}" if found["rss"]
        seconds = Units.seconds(found["duration"])
        "in the #{seconds} to #{ended} #{allocated} allocated, #{retained} live#{rss}"
      end

      def leaks
        found = state ? state.fetch("leaks").grep(String) : published
        found.first(LEAKS).map { |leak| "it leaks: #{leak}" }
      end

      # Those in the files by which the agents of a host see each other.
      def published
        trends = File.join(directory, "trends")
        own = content(trends, /\Atrends-#{@target.inner_pid}-\h{8}\.json\z/) or return []

        named = content(trends, NAMED) or return []
        Agent::Trends::Named.new(named).leaks(own.fetch("service").to_s)
      end

      def content(place, pattern)
        entry = @target.created(place, pattern).max_by { |found| found.stat.mtime } or return
        @target.open(entry) { |file| Agent::Trends::Pool.content(file) }
      end

      def profiles
        place = setting("profiles") or return
        newest = newest(place, /\Amemprof-\d{8}T\d{9}Z-#{@target.inner_pid}\.pb\.gz\z/)
        newest && "each interval is a profile: go tool pprof -http=: #{Suggestion.word(newest.to_s)}"
      end

      def evidence
        found = newest(directory, /\Alimit-\d{8}T\d{6}Z-#{@target.inner_pid}\z/) or return
        "its memory has reached a limit: evidence is in #{Suggestion.word(found.to_s)}"
      end

      # The names begin with the time.
      def newest(place, pattern) = @target.created(place, pattern).max_by(&:name)

      def directory = setting("directory") || Agent::Directory.default(environment, uid: @target.uid)

      # As the process says, or else as the environment that it was started with; nil if that has no absolute
      # path. What the program sets in code is known only to the process.
      def setting(name)
        value = state ? state.dig("settings", name) : given[name]
        value if value.is_a?(String) && value.start_with?("/") && !value.include?("\0")
      end

      def given = Agent::Switch.settings(environment).to_h { |text| text.split("=", 2).push("").first(2) }

      def environment
        names = [Agent::Switch::VARIABLE, "XDG_STATE_HOME", "TMPDIR"]
        names.to_h { |name| [name, @target.environment(name)] }
      end
    end
  end
end
