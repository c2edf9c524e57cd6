# frozen_string_literal: true

require_relative "../api"
require_relative "../clock"
require_relative "../stderr"
require_relative "recorded"
require_relative "requires"

module Memprof
  # Measures the cost of each `require` of a program.
  module Boot
    # Measures the requires of one process, and writes them to a file when it ends. There is one per process:
    # the hooks of Requires are global.
    #
    # While a file loads, its thread carries a mark that labels objects: everything allocated for a file,
    # including its instruction sequences, counts as this file's, on any line.
    module BootRecorder
      # Process status, in pages.
      STATM = "/proc/self/statm"
      PAGE = 4096
      private_constant :STATM, :PAGE

      # A row, and its initial values.
      Node = Struct.new(*Recorded::Row.members, :began, :rss_before)
      private_constant :Node

      class << self
        def start(env)
          @directory = env[Recorded::DIRECTORY] or return
          @until = env[Recorded::UNTIL].to_s
          @pid = Process.pid
          @nodes = []
          @requirers = {}
          @done = {}
          @autoloads = {}
          @late = false
          # Registered before the program's own at_exit blocks, so it runs after them: their files count.
          at_exit { finish }
          @session = Session.prepare
          @began = Clock.now
          @rss = rss
          @session.open
          Requires.install
          Native.mark(Recorded::ROOT)
        end

        # Called before a file is looked up; `name` may be of a String subclass, which could not be
        # unmarshalled elsewhere. Returns nil if the file is known to be loaded.
        def enter(kind, name)
          parent = Native.mark(nil)
          done = @done[name] && kind == :require
          return if done && @requirers[name].key?(parent)

          Native.mark(Recorded::OWN)
          (@requirers[name.to_s.dup.freeze] ||= {})[parent] = true
          node = add(kind, name, parent) unless done
          Native.mark(node ? node.number : parent)
          node
        end

        # Called after the load, even if it failed: `loaded` is the result of `require`, nil if it raised.
        def leave(node, loaded)
          Native.mark(Recorded::OWN)
          measure(node, loaded)
          @late ||= ends_boot?(node)
          Native.mark(node.parent)
        end

        # Called when a constant is registered for autoload.
        def autoload(path)
          quietly { @autoloads[without_extension(path.to_s)] = true }
        end

        # Allocations in the block count as memprof's own.
        def quietly
          before = Native.mark(Recorded::OWN)
          yield
        ensure
          Native.mark(before)
        end

        private

        def add(kind, name, parent)
          kind = :autoload if @autoloads[without_extension(name)]
          node = Node.new(@nodes.size + Recorded::ROOT + 1, parent, name.to_s.dup.freeze, nil, kind, @late)
          @nodes << node
          node.rss_before = rss
          node.began = Clock.now
          node
        end

        def measure(node, loaded)
          node.seconds = Clock.now - node.began
          node.rss = rss && (rss - node.rss_before)
          node.failed = loaded.nil?
          node.empty = loaded == false
          @done[node.name] = true unless node.failed
          node.path = path(node) if loaded
        end

        # `require` adds the file's path after running the file.
        def path(node)
          return $LOADED_FEATURES.last unless node.kind == :load

          File.exist?(node.name) ? File.expand_path(node.name) : node.name
        end

        def ends_boot?(node)
          return false if @until.empty? || node.failed || node.empty

          without_extension(node.path).end_with?("/#{@until}") || node.name == @until
        end

        def without_extension(path) = path.delete_suffix(".rb")

        def rss
          Integer(File.read(STATM).split[1]) * PAGE
        rescue SystemCallError
          nil # not Linux
        end

        def finish
          return unless Process.pid == @pid # a fork has its parent's files

          seconds = Clock.now - @began
          grown = rss && (rss - @rss)
          @session.finish
          @session.collect
          warn_of_loss
          nodes = @nodes.map { |node| node.to_a.first(Recorded::Row.members.size) }
          write(nodes: nodes, requirers: @requirers.transform_values(&:keys),
            marks: Native.marks(@session.id), seconds: seconds, rss: grown, program: $PROGRAM_NAME.to_s)
        rescue StandardError => e
          Stderr.warn("no numbers of process #{Process.pid}: #{e.message.lines.first.to_s.chomp}")
        ensure
          @session.close
        end

        def warn_of_loss
          return unless Requires.lost?

          last = @nodes.last&.name || "the first require"
          Stderr.warn("Kernel#require was replaced after #{last}; " \
                      "later files count as part of their requirers")
        end

        # Marshal, as the program may use another json than the default gem.
        def write(facts)
          path = File.join(@directory, Process.pid.to_s)
          File.binwrite("#{path}.new", Marshal.dump(facts), perm: 0o600)
          File.rename("#{path}.new", path)
        end
      end
    end
  end
end
