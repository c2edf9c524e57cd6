# frozen_string_literal: true

require "json"
require_relative "../cli"

module Memprof
  module MCP
    # A summary of a file of `memprof boot --json`.
    class RecordedBoot
      LARGEST = 64 << 20 # bytes
      private_constant :LARGEST

      def initialize(_terminal = nil); end

      def call(arguments)
        path, limit = arguments.values_at("file", "limit")
        boot = read(path)
        all = { gems: boot[:gems], files: files_of(boot) }
        shown = all.transform_values { |rows| rows.max_by(limit) { |row| row[:self][:retained_bytes] } }
        document = boot.slice(:total, :seconds, :rss).merge(shown)
        [document, page(boot, shown, all), []]
      rescue NoMethodError, TypeError
        raise CLI::UsageError, "#{path} is not a recorded boot"
      end

      private

      def read(path)
        text = File.read(path, LARGEST, encoding: "UTF-8").to_s
        boot = Answer.clean(JSON.parse(text, symbolize_names: true, max_nesting: 2000))
        return boot if boot.is_a?(Hash) && boot[:format] == "memprof-boot"

        raise CLI::UsageError, "#{path} is not a recorded boot"
      rescue JSON::ParserError
        raise CLI::UsageError, "#{path} is not a recorded boot, written by `memprof boot --json -o FILE`"
      end

      # All but the program itself, without what they require in turn.
      def files_of(boot)
        all = [boot[:boot], *boot[:after_boot]]
        all.each { |file| all.concat(file[:requires]) }
        all.drop(1).map { |file| file.except(:requires, :also_required_by) }
      end

      def page(boot, shown, all)
        bytes, objects = boot[:total].values_at(:retained_bytes, :retained_objects)
        time = Cell.text(boot[:seconds], :seconds)
        page = CLI::Page.new.heading("#{Units.bytes(bytes)} in #{Units.objects(objects)}; #{time}")
        { gems: :gem, files: :file }.each do |name, column|
          page.listing(listing(column, shown[name]), heading: "By #{column}")
          more = all[name].size - shown[name].size
          page.note("... #{Units.plural(more, "more #{column}")} (--limit N)") if more.positive?
        end
        page
      end

      def listing(column, rows)
        CLI::Listing.new.columns(:self_bytes) { |one| one[:self][:retained_bytes] }
          .columns(:total) { |one| one[:total][:retained_bytes] }
          .columns(:seconds).columns(column, from: :name).rows(rows)
      end
    end
  end
end
