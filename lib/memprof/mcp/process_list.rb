# frozen_string_literal: true

require_relative "../cli"

module Memprof
  module MCP
    # The running Ruby processes of this user.
    class ProcessList
      # A process, without anything that it could have chosen but its name, which has no other characters than
      # those of words.
      Found = Struct.new(:pid, :process, :rss, keyword_init: true)

      def initialize(_terminal = nil); end

      def call(arguments)
        unless File.directory?("/proc/self")
          raise CLI::UsageError, "processes are listed on Linux only; give a PID"
        end

        all = found.sort_by { |one| -one.rss }
        shown = all.first(arguments.fetch("limit"))
        document = { processes: shown.map(&:to_h), more: all.size - shown.size }
        [document, page(shown, all.size), steps(shown)]
      end

      private

      def found
        pids = Dir.children("/proc").grep(/\A\d+\z/).map(&:to_i)
        (pids - [Process.pid]).filter_map { |pid| process(pid) }
      end

      def process(pid)
        return unless File.stat("/proc/#{pid}").uid == Process.euid

        target = CLI::Target.new(pid)
        Found.new(pid: pid, process: target.name, rss: target.resident) if target.ruby?
      rescue SystemCallError
        nil # it has ended
      end

      def page(shown, count)
        page = CLI::Page.new
        page.heading("#{Units.plural(count, "Ruby process")} of this user")
        page.listing(CLI::Listing.new.columns(:rss, :pid, :process).rows(shown))
        more = count - shown.size
        page.note("... #{Units.plural(more, "more process")} (--limit N)") if more.positive?
        page
      end

      def steps(shown)
        shown.first(3).map { |one| [["leaks", one.pid.to_s], "what leaks in #{one.process}"] } +
          shown.first(1).map { |one| [["memory", one.pid.to_s], "where its memory goes"] }
      end
    end
  end
end
