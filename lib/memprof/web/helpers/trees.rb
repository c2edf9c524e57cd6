# frozen_string_literal: true

require_relative "../../folded_path"

module Memprof
  class Web
    module Helpers
      # Paths from the roots, and the dominator tree.
      module Trees
        def path(path) = Html.tag(:ol, FoldedPath.of(path).map { |step| path_step(step) }, class: "path")

        # The dominator tree, with branches that can be expanded.
        def branches(branch)
          rows_of_branches(branch[:branches])
          branches_of(branch, branch[:sum])
        end

        private

        # The same as rows, each below the one that retains it.
        def rows_of_branches(branches)
          rows_of_picture(levels(branches, 1)) do |t|
            t.columns(:level) { |_, level| level }
              .columns(:retained) { |row, _| row[:sum] }.columns(:count) { |row, _| row[:count] }
              .columns(:label) { |row, _| row[:label] }.columns(:class) { |row, _| row[:class] }
              .columns(:object) { |row, _| row[:text] if row[:count] == 1 }
              .columns(:address) { |row, _| row[:address] if row[:count] == 1 }
          end
        end

        def levels(branches, level)
          branches.flat_map { |branch| [[branch, level], *levels(branch[:branches], level + 1)] }
        end

        def branches_of(branch, whole)
          items = branch[:branches].map { |below| Html.tag(:li, one_branch(below, whole)) }
          more, size = branch[:more]
          if more.positive? && !branch[:branches].empty?
            items << Html.tag(:li, "and #{count(more)} more: ", bytes(size), class: "quiet")
          end
          Html.tag(:ul, items)
        end

        def path_step(step)
          gap = step[:omitted]
          like = gap ? step[:like] || {} : step
          label = Html.tag(:span, short(like[:label].to_s, 60), class: "label") if like[:label]
          return Html.tag(:li, label, " ", left_out(gap, like), class: "quiet") if gap

          size = Html.tag(:span, bytes(step[:retained]), class: "quiet")
          Html.tag(:li, label, " ", object(step), " ", size)
        end

        def left_out(number, like) = ["...", count(number), "more", *like[:class], "..."].join(" ")

        def one_branch(branch, whole)
          line = Html.join([
            Html.tag(:span, bytes(branch[:sum]), class: "number"), bar(branch[:sum] * 100.0 / whole),
            (Html.tag(:span, branch[:label], " ", class: "label") if branch[:label]), branch_name(branch)
          ])
          return Html.tag(:div, line, deeper(branch), class: "leaf") if branch[:branches].empty?

          Html.tag(:details, Html.tag(:summary, line), branches_of(branch, whole))
        end

        def branch_name(branch)
          return object(branch) if branch[:count] == 1 || branch[:address].nil?

          Html.join([count(branch[:count]), " ", class_link(branch[:class])])
        end

        def deeper(branch)
          return unless branch[:more].first.positive? && branch[:address] && branch[:count] == 1

          link(" deeper", here("/tree", of: branch[:address]))
        end
      end
    end
  end
end
