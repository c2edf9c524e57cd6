# frozen_string_literal: true

require "fileutils"
require "json"
require "securerandom"
require_relative "../../errors"
require_relative "../../output"

module Memprof
  module Agent
    class Trends
      # The files by which the processes of a host see each other's series: one per process, and one with the
      # leaks that were named. They are in a directory that only this user can enter; nothing else in it is
      # believed.
      class Pool
        FORMAT = "memprof-trends"
        VERSION = 2
        SERIES = /\Atrends-\d+-\h{8}\.json\z/
        LEADER = "trends.lock"
        NAMED = "trends-named.json"
        # Bytes of a file, and the number of files that are read.
        LARGEST = 4 << 20
        MOST = 128
        # Files of processes that ended are removed after so many hours, or if there are more than MOST.
        KEPT = 48
        OPEN = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
        private_constant :FORMAT, :VERSION, :SERIES, :LEADER, :LARGEST, :MOST, :KEPT, :OPEN

        # The content of an open file; nil if it is too large or has another form.
        def self.content(file)
          return if file.stat.size > LARGEST

          content = JSON.parse(file.read(LARGEST).to_s, max_nesting: 6, create_additions: false)
          content if content.is_a?(Hash) && content.values_at("format", "version") == [FORMAT, VERSION]
        rescue JSON::ParserError, EncodingError
          nil
        end

        def initialize(directory, hour: 3600.0)
          @directory = File.expand_path(directory)
          @hour = hour
          @name = "trends-#{Process.pid}-#{SecureRandom.hex(4)}.json"
          create
        end

        attr_reader :directory

        def publish(content) = write(@name, content)

        # Removes the file of this process.
        def withdraw
          File.unlink(path(@name))
        rescue SystemCallError
          nil # it was never written
        end

        # Yields if no other process is deciding. The system releases the lock if this process is killed.
        def lead
          check
          File.open(path(LEADER), File::RDWR | File::CREAT | File::NOFOLLOW | File::NONBLOCK, 0o600) do |file|
            next false unless own?(file.stat) && file.flock(File::LOCK_EX | File::LOCK_NB)

            yield
            true
          end
        rescue SystemCallError
          false
        end

        # The files of all processes; that is, those which can be read, and are ours.
        def each_published
          return enum_for(:each_published) unless block_given?

          newest.first(MOST).each do |name, _|
            content = read(name)
            yield(content) if content
          end
        end

        def remove_old
          now = Time.now
          newest.each_with_index do |(name, time), index|
            next if index < MOST && now - time < KEPT * @hour

            File.unlink(path(name))
          rescue Errno::ENOENT
            nil # its process removed it
          end
        end

        # What was named, as the leader wrote it; an empty Hash if there is nothing.
        def memory = read(NAMED) || {}

        def memory=(content)
          write(NAMED, content)
        end

        private

        def path(name) = File.join(@directory, name)

        # Below a directory that exists, or that is created for it.
        def create
          FileUtils.mkdir_p(File.dirname(@directory), mode: 0o700)
          begin
            Dir.mkdir(@directory, 0o700)
          rescue Errno::EEXIST
            nil # checked below
          end
          check
        rescue SystemCallError => e
          raise Error, "cannot share trends in #{@directory}: #{Output.reason(e)}"
        end

        def check
          stat = File.lstat(@directory)
          return if stat.directory? && stat.uid == Process.euid && (stat.mode & 0o077).zero?

          raise Error,
            "cannot share trends in #{@directory}: it must be a directory of this user, with mode 0700"
        end

        def own?(stat) = stat.file? && stat.uid == Process.euid && stat.nlink == 1

        # Names and times of the files of processes, newest first.
        def newest
          Dir.children(@directory).grep(SERIES).filter_map do |name|
            stat = File.lstat(path(name))
            [name, stat.mtime] if own?(stat)
          rescue Errno::ENOENT
            nil # removed in between
          end.sort_by { |_, time| -time.to_f }
        end

        def write(name, content)
          text = JSON.generate({ format: FORMAT, version: VERSION, **content })
          raise Error, "cannot share trends: #{name} is too large" if text.bytesize > LARGEST

          check
          Output.write(path(name), text)
        end

        def read(name)
          File.open(path(name), OPEN) { |file| Pool.content(file) if own?(file.stat) }
        rescue SystemCallError, IOError
          nil
        end
      end
    end
  end
end
