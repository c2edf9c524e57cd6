# frozen_string_literal: true

module Memprof
  module CLI
    # Facts about a process from /proc; nil where missing.
    class ProcessFacts
      # Programs that run another one, whose name is more telling.
      RUNNERS = /\A(?:ruby[\d.]*|bundle|env|sh|bash)\z/
      # Programs that serve an application, which is named after its directory.
      SERVERS = /\A(?:puma|rails|rake|rackup|unicorn|sidekiq|thin|falcon|passenger|irb|spring)\b/
      # A Ruby option that is followed by code, or contains it: -e, -ne.
      CODE = /\A-[acdlnpsSUvwy]*e/
      # Ruby options that are followed by a word other than the program.
      WITH_WORD = /\A-[CEIrX]\z/
      private_constant :RUNNERS, :SERVERS, :CODE, :WITH_WORD

      # The directory is kept open, so all reads are of this process, even if its PID is reused.
      def initialize(pid)
        @pid = pid
        @held = File.open("/proc/#{pid}")
        @directory = "/proc/self/fd/#{@held.fileno}"
      rescue SystemCallError
        @directory = "/proc/#{pid}"
      end

      # Omits the environment of the process, which may contain secrets: Ruby shows this in a NoMethodError.
      def inspect = "#<#{self.class} #{@pid}>"

      def name
        words = read("cmdline")&.split("\0")
        return if words.nil? || words.empty?

        title = words.join(" ")
        # Titles of servers:
        # puma: cluster worker 0: 4711 [shop], sidekiq 6.4.1 shop [1 of 5 busy]
        text = title[/\[([^\[\] ]+)\]\s*\z/, 1] || title[/\Asidekiq [\d.]+ (\S+) \[/, 1] ||
          application(program(words))
        text = text.gsub(/[^\w.-]+/, "_").delete_prefix(".")
        text unless text.empty?
      end

      # Equal for processes that run the same code: titles of a server's workers differ only in numbers.
      def code = [executable, read("cmdline").to_s.gsub(/\d+/, "#")]

      def uid = status("Uid")&.split&.fetch(1)&.to_i

      def inner_pid = (status("NSpid")&.split&.last || @pid).to_i

      # Its files. Files below its own root remain reachable after it has ended.
      def files = @files ||= ForeignFiles.new(root, shares_files? ? "" : "/proc/#{@pid}/root")

      # Resident bytes.
      def resident = status("VmRSS").to_i * 1024

      # Bytes of address space that it may still allocate (RLIMIT_AS); nil if unlimited.
      def address_space
        most = read("limits")&.slice(/^Max address space +(\d+)/, 1) or return
        [most.to_i - status("VmSize").to_i * 1024, 0].max
      end

      # Threads: the running ones, the main thread, then the others.
      def threads
        first = @pid
        all = Dir.children("#{@directory}/task").map(&:to_i)
        running, others = all.partition { |thread| read("task/#{thread}/stat").to_s[/.*\) (\S)/m, 1] == "R" }
        [*running, *([first] & others), *(others - [first])]
      rescue SystemCallError
        [first]
      end

      # Whether one of its threads has this name.
      def thread?(name)
        Dir.glob("#{@directory}/task/*/comm").any? { |path| comm(path) == name }
      rescue SystemCallError
        false # the process has ended: Dir.glob ignores ENOENT, but not ESRCH
      end

      def zombie? = status("State").to_s.start_with?("Z")

      # Stopped by SIGSTOP or a terminal, not by a debugger.
      def stopped? = status("State").to_s.start_with?("T")

      def handled_signals = status("SigCgt")&.to_i(16)

      def loaded?(part)
        maps = read("maps")
        maps.nil? || maps.include?("/#{part}")
      end

      def environment(name)
        @environment ||= read("environ").to_s.split("\0").to_h { |pair| pair.split("=", 2).push("").first(2) }
        @environment[name]&.then { |value| Printable.utf8(value) }
      end

      def descendants
        parents = Dir.glob("/proc/[0-9]*/stat").to_h { |path| [path[/\d+/].to_i, parent(path)] }
        found = [@pid]
        found.each { |pid| found.concat(parents.select { |_, parent| parent == pid }.keys.sort) }
        found.drop(1)
      end

      private

      def executable
        File.readlink("#{@directory}/exe")
      rescue SystemCallError
        nil
      end

      # Its root directory, open. /proc/PID/root, like the mounts of its own namespace, exists only as long as
      # the process, unless kept open.
      def root
        @namespace = File.open("#{@directory}/ns/mnt")
        File.open("#{@directory}/root")
      rescue SystemCallError
        File.open("/") if File.directory?("/proc/self")
      end

      # Whether the same paths are the same files here.
      def shares_files?
        there, here = ["#{@directory}/root", "/"].map { |path| File.stat(path) }
        there.dev == here.dev && there.ino == here.ino && same_mounts?
      rescue SystemCallError
        true
      end

      # A separate mount namespace may show other files under the same root.
      def same_mounts?
        File.readlink("#{@directory}/ns/mnt") == File.readlink("/proc/self/ns/mnt")
      rescue SystemCallError
        true
      end

      def program(words)
        before = nil
        words = words.drop_while do |word|
          # The code of `ruby -e` may contain anything, even a password.
          return "ruby-e" if CODE.match?(word)

          belongs = WITH_WORD.match?(before.to_s)
          before = word
          belongs || word.start_with?("-") || RUNNERS.match?(File.basename(word))
        end
        File.basename(words.first.to_s.split.first.to_s.delete_suffix(":"))
      end

      def application(program)
        return File.basename(program, ".rb") unless program.empty? || SERVERS.match?(program)

        directory = File.basename(File.readlink("#{@directory}/cwd"))
        directory == "/" ? program : directory
      rescue SystemCallError
        program
      end

      def comm(path)
        File.binread(path).chomp
      rescue SystemCallError
        nil # the thread has ended
      end

      # The name in parentheses may contain anything, even parentheses.
      def parent(path)
        File.binread(path)[/.*\) \S (\d+)/m, 1].to_i
      rescue SystemCallError
        nil
      end

      def status(name) = read("status")&.slice(/^#{name}:\s*(.*)$/, 1)

      # A process may claim that its environment or command line is all of its memory (prctl).
      def read(name)
        File.binread("#{@directory}/#{name}", (name == "maps") ? 64 << 20 : 4 << 20) || ""
      rescue SystemCallError
        nil
      end
    end
  end
end
