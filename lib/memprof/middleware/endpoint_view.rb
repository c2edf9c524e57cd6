# frozen_string_literal: true

require "securerandom"
require "stringio"
require "memprof/web"
require_relative "../web/records/tracked"

module Memprof
  class Middleware
    # The page of one request. It embeds its style sheet and script, so nothing has to be mounted.
    class EndpointView
      include Web::Helpers::Exports
      include Web::Helpers::Icicles
      include Web::Helpers::Numbers
      include Web::Helpers::Objects
      include Web::Helpers::Tables

      ASSETS = File.expand_path("../../../web/assets", __dir__)
      private_constant :ASSETS

      # The stacks of a request by bytes allocated, as {Web::Icicle} takes them.
      def self.flame(summary)
        tracked = Web::Records::Tracked.read(StringIO.new(summary.report.to_json))
        flame = tracked.flame("allocated_bytes")
        flame.merge(names: flame[:names].map { |name| Web::Records::Tracked.short(name) })
      end

      attr_reader :summary, :view, :nonce

      def initialize(summary, view, env)
        @summary = summary
        @view = view
        @env = env
        @nonce = SecureRandom.urlsafe_base64(16)
      end

      # Nothing is exported.
      def page = nil

      def render = public_send(Web::Template.define(self.class, "endpoint"))

      # The script may only load what the page embeds.
      def policy
        "default-src 'none'; script-src 'nonce-#{nonce}'; style-src 'nonce-#{nonce}'; connect-src data:; " \
          "img-src data:; form-action 'none'; base-uri 'none'; frame-ancestors 'none'"
      end

      def flame_tools = public_send(Web::Template.define(self.class, "flame_tools"))

      def asset(name) = Web::Html.new(File.read(File.join(ASSETS, name), encoding: "UTF-8"))

      # The same request with another view.
      def target(view) = "?#{Endpoint.rewrite(@env["QUERY_STRING"].to_s, view)}"

      def flame_graph
        flame = self.class.flame(summary)
        Loading.json
        json = [JSON.generate(flame, max_nesting: 0)].pack("m0")
        icicle(flame[:names], flame[:frames], data_json: "data:application/json;base64,#{json}") { nil }
      end

      def link(text, target, **attributes)
        target ? Web::Html.tag(:a, text, href: target, **attributes) : Web::Html.escape(text)
      end

      def lines(kind)
        table(summary.rows(kind), empty: "Nothing is #{kind}.") do |table|
          amounts(table, kind)
          table.columns(:class) { |site| site[:class] }
          table.columns(:site) { |site| place(site) }
        end
      end

      def groups(by)
        table(summary.groups(by)) do |table|
          table.columns(:allocated, as: :allocated_bytes)
          table.columns(:count, as: :allocated_objects)
          table.column(summary.alive.capitalize, :bytes, :retained_bytes)
          table.columns(by.to_sym) { |group| group[:name] }
        end
      end

      private

      def place(site) = Web::Html.tag(:span, Cell.place(site), class: "place")

      def amounts(table, kind)
        is_retained = kind == :retained
        table.columns(is_retained ? :retained_bytes : :allocated) { |site| bytes(site[kind][:bytes]) }
        table.columns(:count) { |site| count(site[kind][:objects]) }
        other = is_retained ? :allocated : :freed
        table.columns(is_retained ? :allocated : :gone) { |site| count(site[other][:objects]) }
      end
    end
  end
end
