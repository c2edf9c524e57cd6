# frozen_string_literal: true

require_relative "../cell"
require_relative "../columns"
require_relative "../csv_text"
require_relative "../units"
require_relative "../wording"
require_relative "assets"
require_relative "filter"
require_relative "html"
require_relative "template"
require_relative "helpers/blocks"
require_relative "helpers/charts"
require_relative "helpers/diff_bars"
require_relative "helpers/exact"
require_relative "helpers/exports"
require_relative "helpers/graphs"
require_relative "helpers/icicles"
require_relative "helpers/links"
require_relative "helpers/numbers"
require_relative "helpers/objects"
require_relative "helpers/recordings"
require_relative "helpers/requests"
require_relative "helpers/table"
require_relative "helpers/trees"

module Memprof
  class Web
    # The context of templates: the page, its data, and helpers.
    class View
      include Helpers::Blocks
      include Helpers::Charts
      include Helpers::DiffBars
      include Helpers::Graphs
      include Helpers::Icicles
      include Helpers::Links
      include Helpers::Numbers
      include Helpers::Objects
      include Helpers::Recordings
      include Helpers::Requests
      include Helpers::Tables
      include Helpers::Trees
      include Helpers::Exports
      include Helpers::Exact # last: it overrides

      attr_reader :page, :request, :data

      def initialize(page, request, data)
        @page = page
        @request = request
        @data = data
      end

      def render(name)
        render_content(name)
        partial("layout")
      end

      # The page without its frame.
      def render_content(name)
        @content = partial(name)
      end

      def partial(name) = public_send(Template.define(View, name))

      attr_reader :content
    end
  end
end
