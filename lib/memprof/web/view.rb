# frozen_string_literal: true

require_relative "../cli/loading"
require_relative "assets"
require_relative "helpers/charts"
require_relative "helpers/forms"
require_relative "helpers/groups"
require_relative "helpers/links"
require_relative "helpers/numbers"
require_relative "helpers/objects"
require_relative "helpers/pictures"
require_relative "helpers/table"
require_relative "helpers/trees"
require_relative "html"
require_relative "template"

module Memprof
  class Web
    # What templates see: the page, what it tells, and helpers.
    #
    # @api private
    class View
      include Helpers::Charts
      include Helpers::Forms
      include Helpers::Groups
      include Helpers::Links
      include Helpers::Numbers
      include Helpers::Objects
      include Helpers::Pictures
      include Helpers::Tables
      include Helpers::Trees

      # @return [Page]
      attr_reader :page
      # @return [Request]
      attr_reader :request
      # @return [Hash{Symbol => Object}] what the page tells
      attr_reader :data

      # @param page [Page]
      # @param request [Request]
      # @param data [Hash{Symbol => Object}]
      def initialize(page, request, data)
        @page = page
        @request = request
        @data = data
      end

      # @param name [String] of a template
      # @return [Html] the whole page, in the layout
      def render(name)
        @content = partial(name)
        partial("layout")
      end

      # @param name [String] of a template
      # @return [Html]
      def partial(name)
        public_send(Template.define(View, name))
      end

      # @return [Html] what the layout is around
      attr_reader :content

      # @param name [Symbol]
      # @param content [Array<Object>]
      # @param attributes [Hash{Symbol => Object}]
      # @return [Html]
      def tag(name, *content, **attributes)
        Html.tag(name, *content, **attributes)
      end
    end
  end
end
