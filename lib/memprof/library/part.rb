# frozen_string_literal: true

require "fileutils"
require "securerandom"
require_relative "../native"
require_relative "../output"
require_relative "../units"

module Memprof
  class Library
    # An incoming dump of the library: a file that is not listed, and is removed unless it becomes a dump.
    #
    # Its writer has it locked. So an unlocked file was left behind by a killed process.
    class Part
      PREFIX = ".part-"
      INDEX = ".memprof-index"
      # An index being written by the process with that id.
      UNFINISHED_INDEX = /#{Regexp.escape(INDEX)}\.\d+\.IN_PROGRESS\z/
      WRITE = File::WRONLY | File::BINARY
      LOOK = File::RDONLY | File::NOFOLLOW | File::NONBLOCK # a pipe, too, without blocking
      private_constant :PREFIX, :WRITE, :LOOK

      class << self
        def open(directory, limit:, room:)
          made = []
          while made.empty? # no other process took it for a leftover before it was locked
            path = File.join(directory, "#{PREFIX}#{SecureRandom.hex(8)}")
            Native.create_locked(path, made)
          end
          File.open(made.first, WRITE) { |file| yield new(path, file, limit, room) }
        rescue SystemCallError => e
          raise Output.failure(File.join(directory, "a dump"), e)
        ensure
          [path, path + INDEX].each { |left| FileUtils.rm_f(left) } if path
        end

        # Removes leftovers of killed processes: incoming dumps and indexes.
        def remove_left(directory)
          unfinished = Regexp.union(/\A#{Regexp.escape(PREFIX)}\h{16}\z/, UNFINISHED_INDEX)
          Dir.children(directory).grep(unfinished).each do |name|
            path = File.join(directory, name)
            File.open(path, LOOK) do |file|
              FileUtils.rm_f([path, path + INDEX]) if file.flock(File::LOCK_EX | File::LOCK_NB)
            end
          rescue SystemCallError
            next # its writer has just ended, or it is not ours
          end
        end

        def full(max_size)
          "the library is full: all of it may take #{Units.bytes(max_size.to_i)}; delete dumps, or raise " \
            "--max-size"
        end
      end

      attr_reader :path, :size

      def initialize(path, file, limit, room)
        @path = path
        @file = file
        @limit = limit
        @room = room
        @size = 0
      end

      def expect(bytes)
        raise TooLarge, "a dump may have #{Units.bytes(@limit)} (--max-upload)" if @limit && bytes > @limit
        raise Full, "the library is full: it has room for #{Units.bytes(@room)}" if @room && bytes > @room
      end

      def write(bytes)
        expect(@size + bytes.bytesize)
        @file.write(bytes)
        @size += bytes.bytesize
        bytes.bytesize
      end

      # Flushes the file, so that a full disk shows here.
      def finish = @file.flush
    end
  end
end
