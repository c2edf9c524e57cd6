# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/boots/1/flame`: the tree of requires as a flame graph.
      class BootFlame < RecordPage
        at "/boots/:id/flame"
        about :boot

        def title = "Requires"

        def breadcrumbs = [*super, [record.name, within]]

        def scripts = ["flame.js"]

        def styles = [*super, "flame.css"]

        def data = { values: BootPage::VALUES, **content.flame(value) }

        def value = choice(:value, BootPage::VALUES, BootPage::VALUES.first)
      end
    end
  end
end
