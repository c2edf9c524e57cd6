# frozen_string_literal: true

require "etc"
require_relative "../output"

module Memprof
  module Agent
    # The directory of the agent's files: of this user alone, and not a link that another user could have put
    # there. What is written into it is complete, or not there, also after a power failure.
    class Directory
      NAME = "memprof"
      SUBDIRECTORY = "agent"
      private_constant :NAME, :SUBDIRECTORY

      # Below XDG_STATE_HOME, or in the directory for temporary files.
      def self.default(env = ENV, uid: Process.euid)
        state = env["XDG_STATE_HOME"].to_s
        return File.join(state, NAME, SUBDIRECTORY) if state.start_with?("/")

        temporary = env["TMPDIR"].to_s
        temporary = Etc.systmpdir || "/tmp" unless temporary.start_with?("/")
        File.join(temporary, "#{NAME}-#{SUBDIRECTORY}-#{uid}")
      end

      attr_reader :path

      def initialize(path = nil)
        @path = path || Directory.default
      end

      # Creates it, with mode 0700, and checks it. Raises Error if it can't be used.
      def prepare
        create(@path)
        check(@path)
        self
      rescue SystemCallError => e
        raise Output.failure(@path, e)
      end

      # A directory in it, created and checked.
      def subdirectory(name) = Directory.new(File.join(@path, name)).prepare

      # Writes a file for a block, as Output does, and waits until the disk has it. Returns its path.
      def write(name, &block)
        path = File.join(@path, name)
        Output.open(path) do |file|
          block.call(file)
          file.flush
          file.fsync
        end
        sync
        path
      rescue SystemCallError, IOError => e
        raise Output.failure(path, e)
      end

      # Waits until the disk has a file that other code wrote here, and its name.
      def settle(name)
        File.open(File.join(@path, name), &:fsync)
        sync
      end

      # Waits until the disk has the names in it.
      def sync
        File.open(@path, &:fsync)
      rescue Errno::EINVAL, Errno::EBADF
        nil # a file system that does so itself
      end

      # Removes it with its files; leaves it if there is anything but files in it.
      def remove
        Dir.children(@path).each { |name| File.unlink(File.join(@path, name)) }
        Dir.rmdir(@path)
        true
      rescue SystemCallError
        false
      end

      private

      # Its parents, too, as `mkdir -p -m 700`.
      def create(path)
        parent = File.dirname(path)
        create(parent) unless parent == path || File.exist?(parent)
        Dir.mkdir(path, 0o700)
      rescue Errno::EEXIST
        nil # created before, perhaps by another process in between
      end

      def check(path)
        stat = File.lstat(path)
        refuse(path, "it is a symbolic link") if stat.symlink?
        refuse(path, "it is not a directory") unless stat.directory?
        refuse(path, "it belongs to another user") unless stat.uid == Process.euid
        refuse(path, "other users can write to it (chmod 700)") if stat.mode.anybits?(0o022)

        above = File.stat(File.dirname(path))
        refuse(path, "other users can replace it") if above.mode.anybits?(0o002) && !above.sticky?
        refuse(path, "no permission to write to it") unless File.writable?(path)
      end

      def refuse(path, reason) = raise(Error, "cannot write to #{path}: #{reason}")
    end
  end
end
