# frozen_string_literal: true

require "digest"
require_relative "../version"
require_relative "heaps"
require_relative "page"
require_relative "request"
require_relative "router"
require_relative "html"
require_relative "view"

module Memprof
  class Web
    # The pages about one or several files as one HTML file that needs no server: for a ticket. It has no
    # scripts, links to nothing, loads nothing, and is at most as large as an attachment may be.
    class Report
      MOST = 2 << 20 # bytes
      STYLES = %w[style.css diff.css records.css flame.css report.css].freeze
      # Pages of a dump; of several, a verdict and a comparison come first.
      HEAP = %i[Leaks Overview Groups ObjectList Flame Slots].freeze
      RECORDS = { tracked: %i[Tracked TrackedFlame], malloc: %i[Recording RecordingFlame],
                  trace: %i[TracePage], boot: %i[BootPage BootFlame] }.freeze
      private_constant :MOST, :STYLES, :HEAP, :RECORDS

      # A page of the report.
      Section = Struct.new(:title, :html)

      # `notes` are sentences about the whole; `strings` adds duplicate strings.
      def initialize(heaps, notes: [], strings: false, most: MOST)
        Router.standard
        @heaps = heaps
        @notes = notes
        @strings = strings
        @most = most
      end

      def to_html
        sections = pages.map { |page, path| section(page, path) }
        left_out = []
        text = document(sections, left_out)
        until text.bytesize <= @most || sections.empty?
          left_out.unshift(sections.pop.title)
          text = document(sections, left_out)
        end
        text
      end

      private

      def pages
        entries = @heaps.to_a
        [*(compared(entries) if entries.size > 1), *(of_heap(entries.last) if entries.any?),
          *of_records(@heaps.records.to_a)]
      end

      # Two reports are compared; the page about the later one follows.
      def of_records(records)
        before, after = records
        return records.flat_map { |record| of_record(record) } unless after

        parameters = [{ id: after.id.to_s }, { "before" => before.id.to_s }]
        compared = [page(:TrackedDiff, *parameters)]
        compared << page(:TrackedFlame, *parameters) if records.all? { |record| record.content.stacks? }
        [*compared, page(:Tracked, parameters.first)]
      end

      def compared(entries)
        ids = entries.map(&:id)
        compared = %w[a b c].zip(ids).reject { |_, id| id.nil? }.to_h.transform_values(&:to_s)
        [page(:Verdict, {}, "dumps" => ids.join(",")),
          *%i[Diff DiffFlame].map { |name| page(name, {}, compared) }]
      end

      # A verdict on several dumps takes the place of that on one.
      def of_heap(entry)
        names = @heaps.count > 1 ? HEAP.drop(1) : HEAP
        names += [:Strings] if @strings
        names.map { |name| page(name, { heap: entry.id.to_s }) }
      end

      def of_record(record)
        names = RECORDS.fetch(record.kind)
        names = names.first(1) if record.kind == :tracked && !record.content.stacks?
        names.map { |name| page(name, { id: record.id.to_s }) }
      end

      def page(name, captures, params = {})
        page = Pages.const_get(name).new(@heaps, captures, params)
        path = page.class.path.gsub(/:(\w+)/) { captures.fetch($1.to_sym) }
        [page, path]
      end

      def section(page, path)
        request = Request.new("PATH_INFO" => path)
        view = View.new(page, request, without_warning(page.data))
        html = view.render_content(page.view)
        parts = [Static.of(html), rest_of_list(view), view.terminal_line(copy: false)]
        Section.new(page.title, Html.join(parts))
      end

      # The note on contents says it already.
      def without_warning(data)
        overview = data[:overview]
        return data if @strings || !overview.is_a?(Hash) || !overview[:warnings]

        warnings = overview[:warnings] - [Heap::Sentences::NO_TEXTS]
        data.merge(overview: overview.merge(warnings: warnings))
      end

      # The pager of the page is left out.
      def rest_of_list(view)
        return unless view.cut_list

        total, rows = view.cut_list
        Html.tag(:p, "The list has #{Units.count(total)} rows; these are the first #{Units.count(rows)}.",
          class: "quiet")
      end

      def document(sections, left_out)
        notes = @notes.dup
        notes << "Left out, as the report would be too large: #{left_out.join(", ")}." if left_out.any?
        Document.new(title, sections, notes, style).render.to_str
      end

      def title = [*@heaps.map(&:name), *@heaps.records.map(&:name)].join(" \u2192 ")

      def style = @style ||= Html.new(STYLES.map { |name| Assets.text(name) }.join)

      # The context of the template.
      class Document
        attr_reader :title, :sections, :notes, :style

        def initialize(title, sections, notes, style)
          @title = title
          @sections = sections
          @notes = notes
          @style = style
        end

        # Only the style sheet that is inside may apply, and nothing may run or load.
        def policy
          digest = Digest::SHA256.base64digest(style)
          "default-src 'none'; style-src 'sha256-#{digest}'; base-uri 'none'; form-action 'none'"
        end

        def render = public_send(Template.define(self.class, "report"))
      end
      private_constant :Section, :Document
    end

    # A rendered page without what needs a server: links become text, forms and menus are left out.
    module Static
      LEFT_OUT = %r{<(form|nav|button)\b.*?</\1>|<(div|p)\ class="flame-(?:tools|detail|others)".*?</\2>}mx
      TAG = %r{<(/?)(svg|a|h1|h2)\b([^>]*)>}
      # Attributes of pages that scripts read or links lead to.
      UNUSED = / (?:data-[\w-]+|href|id|aria-current|aria-sort)="[^"]*"/
      # A heading of what was left out.
      EMPTY = %r{<section[^>]*>\s*<h3[^>]*>[^<]*</h3>\s*</section>}
      BELOW = { "h1" => "h2", "h2" => "h3" }.freeze
      private_constant :LEFT_OUT, :TAG, :UNUSED, :EMPTY, :BELOW

      # Texts have no < and no quotes: they are escaped.
      def self.of(html)
        pictures = 0
        text = String.new(html).gsub(LEFT_OUT, "").gsub(TAG) do
          closing = $1
          name = $2
          attributes = $3
          pictures += closing.empty? ? 1 : -1 if name == "svg"
          name = BELOW.fetch(name) { pictures.positive? ? "g" : "span" } unless name == "svg"
          "<#{closing}#{name}#{attributes}>"
        end
        Html.new(text.gsub(/<[^>]+>/) { |tag| tag.gsub(UNUSED, "") }.gsub(EMPTY, ""))
      end
    end
  end
end
