# frozen_string_literal: true

require_relative "../record_page"

module Memprof
  class Web
    module Pages
      # `/boots/1/flame`: the tree of requires as a flame graph.
      class BootFlame < RecordPage
        at "/boots/:id/flame", title: "Requires", assets: %w[flame.js flame.css]

        def breadcrumbs = [*super, [record.name, within]]

        def data = { values: BootPage::VALUES, **content.flame(value) }

        def value = choice(:value, BootPage::VALUES, BootPage::VALUES.first)
      end
    end
  end
end
