# frozen_string_literal: true

require_relative "printable"

module Memprof
  # Lines of a program's source, around one that a dump names: if the file exists and is Ruby. A dump may come
  # from anywhere, so no other file that it names is read.
  module Source
    ENDINGS = %w[.rb .erb .rake .ru .gemspec .haml .slim .builder .jbuilder .rbi].freeze
    AROUND = 4
    # Maximum bytes of a file that is read, and characters of a line that are shown.
    LARGEST = 2 * 1024 * 1024
    LONGEST = 240
    OPEN = File::RDONLY | File::NOFOLLOW | File::NONBLOCK
    private_constant :ENDINGS, :AROUND, :LARGEST, :LONGEST, :OPEN

    class << self
      # With `any`, a file known to be the program's is read, whatever its extension.
      def lines(file, line, around: AROUND, any: false)
        return unless line.positive? && File.file?(file)

        content = content(file, any)
        return if content.nil? || content.bytesize > LARGEST

        first = [line - around, 1].max
        rows = content.lines(chomp: true)[first - 1..line + around - 1]
        return if rows.nil? || rows.size < line - first + 1

        rows.each.with_index(first).map do |text, number|
          { line: number, text: Printable.utf8(text)[0, LONGEST] }
        end
      rescue SystemCallError, ArgumentError
        nil # not readable, or an invalid name (a NUL)
      end

      # One line, stripped, or nil.
      def line(file, line)
        text = lines(file, line, around: 0)&.first&.fetch(:text)&.strip
        text unless text.to_s.empty?
      end

      private

      # A link may lead to a file of any name, and the file may have been replaced by now.
      def content(file, any)
        real = File.realpath(file)
        return unless any || ENDINGS.include?(File.extname(real))

        File.open(real, OPEN) do |io|
          io.read(LARGEST + 1)&.force_encoding(Encoding::UTF_8) if io.stat.file?
        end
      end
    end
  end
end
